#include "launch/job/job_size.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "data/io/output.h"

namespace redspine {
namespace {

struct Launcher {
  const char* name;
  const char* size;  // variables
  const char* rank;
};

// The first one that is there counts: under mpirun in a job of Slurm, Slurm's are of its daemons.
constexpr std::array kLaunchers = {
    Launcher{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Launcher{"mpiexec", "PMI_SIZE", "PMI_RANK"},
    Launcher{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

/// -1 where it is no number.
int number_of(const char* text) {
  int number = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, number);
  return code == std::errc() && stop == end ? number : -1;
}

}  // namespace

bool reject_many_ranks(const std::string& command) {
  for (const Launcher& launcher : kLaunchers) {
    const char* size = std::getenv(launcher.size);
    if (size == nullptr) continue;
    const int num_ranks = number_of(size);
    if (num_ranks <= 1) return false;
    const char* rank = std::getenv(launcher.rank);
    if (rank != nullptr && number_of(rank) > 0) {
      // The launcher ends all at the first failure, which must not be before it is told.
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return true;
    }
    print_error(
        "redspine: {0}: is for one process, and was started as {1} ({2} is {1}); start it "
        "once, without {3}: redspine {0} ...\n",
        command, num_ranks, launcher.size, launcher.name);
    return true;
  }
  return false;
}

}  // namespace redspine
