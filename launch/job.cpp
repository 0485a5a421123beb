#include "launch/job.h"

namespace redspine {

int run_job(const std::function<int(const MpiSession&)>& action) {
  const MpiSession session(nullptr, nullptr);
  try {
    return action(session);
  } catch (const Refused&) {
    return kExitMistake;
  } catch (const CollectiveError& error) {
    if (session.world().rank() == 0) tell(session.world(), error.what());
    return kExitFailed;
  } catch (const std::exception& error) {
    tell(session.world(), error.what());
    session.abort(kExitFailed);
  }
}

JobThreads agree_on_threads(const RankGroup& world) {
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

void tell_warnings(const RankGroup& world, const JobThreads& threads) {
  if (world.rank() != 0) return;
  for (const std::string& warning : threads.plan.warnings) tell(world, "warning: " + warning);
}

}  // namespace redspine
