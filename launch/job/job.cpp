#include "launch/job/job.h"

#include <fmt/format.h>

#include <cstdlib>

namespace redspine {
namespace {

/// Tasks of one Slurm step that MPI knows nothing of, as srun starts them without a plugin of MPI,
/// would each do the whole work, and in each other's way.
std::string problem_of_lone_task(const ProcessGroup& world) {
  const char* num_tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  const bool is_from_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  if (num_tasks == nullptr || is_from_mpirun || world.size() > 1) return "";
  if (std::strtol(num_tasks, nullptr, 10) <= 1) return "";
  return fmt::format(
      "is one of {} tasks of a Slurm step that do not know of each other: let mpirun start the "
      "ranks within the job, as launch/train.sbatch does, or srun --mpi=pmix; srun --ntasks=1 "
      "starts one rank",
      num_tasks);
}

}  // namespace

int run_job(const std::function<int(const MpiSession&)>& action) {
  const MpiSession session(nullptr, nullptr);
  try {
    reject_on_all_ranks(session.world(), problem_of_lone_task(session.world()));
    return action(session);
  } catch (const Rejected&) {
    return kExitUserError;
  } catch (const CollectiveError& error) {
    if (session.world().rank() == 0) log_from_rank(session.world(), error.what());
    return kExitFailed;
  } catch (const std::exception& error) {
    log_from_rank(session.world(), error.what());
    session.abort(kExitFailed);
  }
}

JobThreads agree_on_threads(const ProcessGroup& world) {
  const RankCpus mine = agree(world, this_rank_cpus);
  JobThreads threads;
  std::vector<RankCpus> ranks;
  for (const std::string& line : world.all_gather(mine.to_string())) {
    ranks.push_back(RankCpus::from_string(line));
    threads.hosts.push_back(ranks.back().host);
  }
  threads.plan = plan_threads(ranks);
  return threads;
}

void log_warnings(const ProcessGroup& world, const JobThreads& threads) {
  if (world.rank() != 0) return;
  for (const std::string& warning : threads.plan.warnings)
    log_from_rank(world, "warning: " + warning);
}

}  // namespace redspine
