// How many threads each rank computes with: what the affinity mask, the CPU quota and the other
// ranks of the host leave it, never what the machine has.
//
// Every rank describes its own limits; the descriptions are exchanged, and each rank then makes the
// same plan for all. this_rank_cpus() is local, plan_threads() pure.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace redspine {

/// What one rank may use of its host.
struct RankCpus {
  std::string host;
  std::vector<int> cpus;          // numbers of the CPUs in the affinity mask, ascending
  double quota;                   // CPUs' worth of time that its control group gets; may be inf
  int num_requested_threads = 0;  // OMP_NUM_THREADS; 0 where it is not set
  // CPUs of mpirun or its daemon on the host, which may have bound the rank to fewer; 0 where Open
  // MPI did not start it.
  int num_launcher_cpus = 0;
  bool is_binding_threads = false;  // OMP_PROC_BIND: each thread stays on a place of its own

  /// One line, for the exchange between ranks.
  std::string to_string() const;
  static RankCpus from_string(const std::string& line);
  bool operator==(const RankCpus&) const = default;
};

/// Throws ConfigError where OMP_NUM_THREADS is no positive number.
RankCpus this_rank_cpus();

/// The CPU quota of this process's control group and those above it: the least of cgroup v2's
/// cpu.max and of v1's cpu.cfs_quota_us / cpu.cfs_period_us, or infinity. `root` is where /proc and
/// /sys lie.
double cgroup_cpu_quota(const std::filesystem::path& root = "/");

struct ThreadPlan {
  std::vector<int> num_threads;  // [rank]
  // For each host that has more threads than CPUs, or whose ranks are bound to few of its CPUs.
  std::vector<std::string> warnings;
};

/// OMP_NUM_THREADS where it is given. Else a rank's share of its mask among the ranks of the host
/// whose masks overlap with it (ranks that are bound apart share nothing), and of the quota, which
/// all ranks of a host share; at least 1.
ThreadPlan plan_threads(std::span<const RankCpus> ranks);

}  // namespace redspine
