// What every command that runs on all ranks of a job begins and ends with: MPI, a share of the
// CPUs, and one exit code for all. Collective over the world.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "launch/job/agree.h"
#include "launch/job/exit_code.h"
#include "launch/job/threads.h"
#include "parallel/group/failure.h"
#include "parallel/group/mpi_session.h"

namespace redspine {

/// Starts MPI and runs `action`, whose result becomes that of the process. Where the ranks reject
/// together, it is kExitUserError; where one fails alone, it ends the whole job.
int run_job(const std::function<int(const MpiSession&)>& action);

/// For the part of an action during which objects live whose end would wait for collectives that
/// other ranks never join: where this rank alone fails, ends the whole job before they end. Where
/// all fail, they end in order.
template <class Action>
int run_or_abort(const MpiSession& session, const Action& action) {
  const ProcessGroup& world = session.world();
  try {
    return action();
  } catch (const CollectiveError& error) {
    if (world.rank() == 0) log_from_rank(world, error.what());
    return kExitFailed;
  } catch (const std::exception& error) {
    log_from_rank(world, error.what());
    session.abort(kExitFailed);
  }
}

struct JobThreads {
  std::vector<std::string> hosts;  // [rank]
  ThreadPlan plan;

  int of(const ProcessGroup& world) const {
    return plan.num_threads[static_cast<std::size_t>(world.rank())];
  }
};

/// How many threads each rank computes with.
JobThreads agree_on_threads(const ProcessGroup& world);
/// On rank 0: the plan's warnings. After the last problem that a user could make, which would be
/// hard to see below them.
void log_warnings(const ProcessGroup& world, const JobThreads& threads);

}  // namespace redspine
