#include "launch/job/threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "launch/job/agree.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Of this process, or of another one.
std::vector<int> affinity_mask(pid_t process = 0) {
  // The kernel refuses a mask that is shorter than its own.
  for (int num_cpus = 1024;; num_cpus *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(num_cpus);
    std::vector<unsigned char> memory(bytes);
    auto* mask = reinterpret_cast<cpu_set_t*>(memory.data());
    if (sched_getaffinity(process, bytes, mask) == 0) {
      std::vector<int> cpus;
      for (int cpu = 0; cpu < num_cpus; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask)) cpus.push_back(cpu);
      }
      return cpus;
    }
    if (errno != EINVAL || num_cpus > (1 << 20)) throw Error("sched_getaffinity failed");
  }
}

int requested_threads() {
  const char* setting = std::getenv("OMP_NUM_THREADS");
  if (setting == nullptr || *setting == '\0') return 0;
  const std::string_view text = setting;
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  // Further levels of nesting may follow after a comma; there is one level here.
  const bool is_whole = result.ptr == text.data() + text.size() || *result.ptr == ',';
  if (result.ec != std::errc() || !is_whole || number < 1) {
    throw ConfigError("OMP_NUM_THREADS",
                      fmt::format("read \"{}\"; legal: a whole number of at least 1", text));
  }
  return number;
}

int launcher_cpus() {
  const bool is_from_open_mpi = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  return is_from_open_mpi ? static_cast<int>(affinity_mask(getppid()).size()) : 0;
}

/// quota / period, or infinity where either is missing, "max" or not positive.
double quotient(const std::string& quota, const std::string& period) {
  double values[2] = {0.0, 0.0};
  const std::string* texts[2] = {&quota, &period};
  for (int i = 0; i < 2; ++i) {
    const std::string& text = *texts[i];
    const auto result = std::from_chars(text.data(), text.data() + text.size(), values[i]);
    if (result.ec != std::errc() || values[i] <= 0.0) return kUnlimited;
  }
  return values[0] / values[1];
}

std::string first_word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

double quota_of_folder_v1(const std::filesystem::path& folder) {
  return quotient(first_word(folder / "cpu.cfs_quota_us"),
                  first_word(folder / "cpu.cfs_period_us"));
}

double quota_of_folder_v2(const std::filesystem::path& folder) {
  std::string quota;
  std::string period;
  std::ifstream(folder / "cpu.max") >> quota >> period;
  return quotient(quota, period);
}

/// The least quota from `group` up to the root of its hierarchy. A container may see its own group
/// as the root while /proc names the path outside; those folders are simply not there.
double least_quota(const std::filesystem::path& hierarchy, const std::filesystem::path& group,
                   double (*quota_of_folder)(const std::filesystem::path&)) {
  double least = quota_of_folder(hierarchy);
  std::filesystem::path folder = hierarchy;
  for (const auto& part : group.relative_path()) {
    folder /= part;
    least = std::min(least, quota_of_folder(folder));
  }
  return least;
}

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

int whole_cpus(double cpus) { return static_cast<int>(std::clamp(std::floor(cpus), 1.0, 1e6)); }

}  // namespace

std::string RankCpus::to_string() const {
  return fmt::format("{} {} {} {} {:d} {}", host, quota, num_requested_threads, num_launcher_cpus,
                     is_binding_threads, fmt::join(cpus, " "));
}

RankCpus RankCpus::from_string(const std::string& line) {
  std::istringstream words(line);
  RankCpus rank;
  std::string quota;
  words >> rank.host >> quota >> rank.num_requested_threads >> rank.num_launcher_cpus >>
      rank.is_binding_threads;
  rank.quota = std::strtod(quota.c_str(), nullptr);
  for (int cpu = 0; words >> cpu;) rank.cpus.push_back(cpu);
  return rank;
}

RankCpus this_rank_cpus() {
  return {.host = ProcessGroup::host_name(),
          .cpus = affinity_mask(),
          .quota = cgroup_cpu_quota(),
          .num_requested_threads = requested_threads(),
          .num_launcher_cpus = launcher_cpus(),
          .is_binding_threads = omp_get_proc_bind() != omp_proc_bind_false};
}

double cgroup_cpu_quota(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  double least = kUnlimited;
  std::ifstream groups(root / "proc/self/cgroup");
  // Each line is "ID:CONTROLLERS:PATH"; v2 has ID 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::filesystem::path group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_quota(mount, group, quota_of_folder_v2));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      least = std::min({least, least_quota(mount / "cpu", group, quota_of_folder_v1),
                        least_quota(mount / controllers, group, quota_of_folder_v1)});
    }
  }
  return least;
}

ThreadPlan plan_threads(std::span<const RankCpus> ranks) {
  ThreadPlan plan;
  std::map<std::string, std::vector<std::size_t>> ranks_of_host;
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks_of_host[ranks[r].host].push_back(r);

  plan.num_threads.resize(ranks.size());
  for (const auto& [host, members] : ranks_of_host) {
    std::set<int> cpus_of_host;
    double quota = 0.0;
    int num_threads = 0;
    int num_launcher_cpus = 0;  // where nobody chose the number of threads
    bool is_binding_to_same = false;
    for (const std::size_t r : members) {
      const RankCpus& rank = ranks[r];
      const auto num_sharing =
          std::count_if(members.begin(), members.end(),
                        [&](std::size_t other) { return overlap(rank.cpus, ranks[other].cpus); });
      const double share =
          std::min(static_cast<double>(rank.cpus.size()) / static_cast<double>(num_sharing),
                   rank.quota / static_cast<double>(members.size()));
      plan.num_threads[r] =
          rank.num_requested_threads > 0 ? rank.num_requested_threads : whole_cpus(share);
      num_threads += plan.num_threads[r];
      is_binding_to_same |= rank.is_binding_threads && num_sharing > 1;
      cpus_of_host.insert(rank.cpus.begin(), rank.cpus.end());
      quota = std::max(quota, rank.quota);
      if (rank.num_requested_threads == 0) {
        num_launcher_cpus = std::max(num_launcher_cpus, rank.num_launcher_cpus);
      }
    }
    const auto within_quota = [quota](std::size_t num_cpus) {
      return whole_cpus(std::min(static_cast<double>(num_cpus), quota));
    };
    const int num_usable = within_quota(cpus_of_host.size());
    const int num_available = within_quota(static_cast<std::size_t>(num_launcher_cpus));
    if (num_threads > num_usable) {
      plan.warnings.push_back(fmt::format(
          "{} on {} {} with {} in all, but may use {} there: they will wait for one another; start "
          "fewer ranks or set OMP_NUM_THREADS",
          counted(members.size(), "rank"), host, members.size() == 1 ? "computes" : "compute",
          counted(num_threads, "thread"), counted(num_usable, "CPU")));
    }
    if (is_binding_to_same) {
      plan.warnings.push_back(fmt::format(
          "OMP_PROC_BIND or OMP_PLACES binds the threads of several ranks on {} to the same CPUs: "
          "unset them, or let mpirun give each rank CPUs of its own (--map-by slot:PE=N --bind-to "
          "core)",
          host));
    }
    if (num_available > num_usable) {
      plan.warnings.push_back(fmt::format(
          "ranks on {} are bound to {} of the {} that mpirun may use there: --bind-to none "
          "lets them share all, --map-by slot:PE=N --bind-to core gives each N of its own; "
          "OMP_NUM_THREADS says that the few are meant",
          host, num_usable, counted(num_available, "CPU")));
    }
  }
  return plan;
}

}  // namespace redspine
