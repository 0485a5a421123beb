#include "launch/job/process.h"

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

namespace redspine {
namespace {

/// Opened the wrong way around, so that using it stays the error that it was. They are taken in
/// ascending order, so that each open gets the number that is free.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// A corpus may have thousands of files, and the usual limit of 1024 is for programs with select().
void raise_limit_of_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Under OMP_PROC_BIND, OpenMP has bound this thread to the first of its places before main began,
/// and every other thread would inherit that. Its own threads are bound when they start.
void leave_first_place() {
  std::vector<int> cpus;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> of_place(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, of_place.data());
    cpus.insert(cpus.end(), of_place.begin(), of_place.end());
  }
  if (cpus.empty()) return;
  const int num_cpus = *std::max_element(cpus.begin(), cpus.end()) + 1;
  const std::size_t bytes = CPU_ALLOC_SIZE(num_cpus);
  std::vector<unsigned char> memory(bytes);
  auto* mask = reinterpret_cast<cpu_set_t*>(memory.data());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask);
  ::sched_setaffinity(0, bytes, mask);
}

}  // namespace

void prepare_process() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  occupy_closed_streams();
  raise_limit_of_open_files();
  leave_first_place();
}

}  // namespace redspine
