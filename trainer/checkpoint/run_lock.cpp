#include "trainer/checkpoint/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "tensor/error.h"

namespace redspine {
namespace {

// What a lock file says: "HOST PROCESS SLURM_JOB SLURM_RESTARTS SLURM_STEP", the words about Slurm
// "-" outside of it.
struct Holder {
  std::string host;
  pid_t process = 0;
  std::string slurm_job = "-";
  std::string slurm_restarts = "-";  // of the job
  std::string slurm_step = "-";      // "-" in the job's script, too
};

std::string environment(const char* name, const char* otherwise = "-") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

Holder this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
  Holder self{.host = host.data(), .process = ::getpid()};
  self.slurm_job = environment("SLURM_JOB_ID");
  if (self.slurm_job == "-") return self;
  self.slurm_restarts = environment("SLURM_RESTART_COUNT", "0");
  self.slurm_step = environment("SLURM_STEP_ID");
  return self;
}

Holder read_holder(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size() - 1, 0);
  Holder holder;
  if (size > 0) {
    std::istringstream(std::string(text.data(), static_cast<std::size_t>(size))) >> holder.host >>
        holder.process >> holder.slurm_job >> holder.slurm_restarts >> holder.slurm_step;
  }
  return holder;
}

std::string to_string(const Holder& holder) {
  std::string text = fmt::format("process {} on {}", holder.process, holder.host);
  if (holder.slurm_job != "-") text += fmt::format(" of Slurm job {}", holder.slurm_job);
  if (holder.slurm_step != "-") text += fmt::format(", step {}", holder.slurm_step);
  return text;
}

[[noreturn]] void reject(const std::string& path, const Holder& holder) {
  throw ConfigError(
      "run.name",
      fmt::format("another job is at work in this run's directory: {}; if that job is gone, delete "
                  "{}",
                  to_string(holder), path));
}

[[noreturn]] void fail(const std::string& path, const char* action) {
  throw ConfigError("run.output_dir",
                    fmt::format("{}: {} failed: {}", path, action, std::strerror(errno)));
}

/// Whether the open file is still the one of that name: its holder deletes it at its end.
bool is_current(int descriptor, const std::string& path) {
  struct stat open_file = {};
  struct stat named_file = {};
  return ::fstat(descriptor, &open_file) == 0 && ::stat(path.c_str(), &named_file) == 0 &&
         open_file.st_ino == named_file.st_ino && open_file.st_dev == named_file.st_dev;
}

/// Slurm starts a job again only after the end of its earlier start, on whichever host. Within one
/// start nothing is over by its number: steps run side by side, as tasks of a step do.
bool is_of_earlier_start(const Holder& holder, const Holder& self) {
  if (self.slurm_job == "-" || holder.slurm_job != self.slurm_job) return false;
  const auto number = [](const std::string& text) {
    std::int64_t value = -1;  // a lock of a version that did not write it
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const std::int64_t before = number(holder.slurm_restarts);
  return before >= 0 && before < number(self.slurm_restarts);
}

/// Nobody has the file locked as far as this host can tell; is the holder that it names dead?
bool is_dead(const Holder& holder, const Holder& self, bool has_kernel_lock) {
  if (holder.host.empty()) return true;  // killed before it wrote its name
  if (is_of_earlier_start(holder, self)) return true;
  if (holder.host != self.host) return false;
  return has_kernel_lock || (::kill(holder.process, 0) != 0 && errno == ESRCH);
}

}  // namespace

RunLock::RunLock(const std::string& run_directory) : path_(run_directory + "/lock") {
  const Holder self = this_process();
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(path_, "opening the lock");
    const bool has_kernel_lock = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const bool is_held = !has_kernel_lock && errno == EWOULDBLOCK;
    const Holder holder = read_holder(descriptor_);
    if (is_held || !is_dead(holder, self, has_kernel_lock)) {
      ::close(descriptor_);
      reject(path_, holder);
    }
    if (is_current(descriptor_, path_)) {
      if (!holder.host.empty()) {
        takeover_ = fmt::format("took over the lock of {}, which has ended", to_string(holder));
      }
      break;
    }
    ::close(descriptor_);
  }
  const std::string text = fmt::format("{} {} {} {} {}\n", self.host, self.process, self.slurm_job,
                                       self.slurm_restarts, self.slurm_step);
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    ::close(descriptor_);
    fail(path_, "writing the lock");
  }
}

void RunLock::check_free(const std::string& run_directory) {
  const std::string path = run_directory + "/lock";
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return;
    fail(path, "opening the lock");
  }
  const Holder self = this_process();
  const Holder holder = read_holder(descriptor);
  bool is_held = !is_dead(holder, self, false);
  // A process of that number lives. Whether it is the holder shows by the kernel's lock alone,
  // which nobody else is about to take: only then is it tried.
  if (is_held && holder.host == self.host) {
    is_held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  ::close(descriptor);
  if (is_held) reject(path, holder);
}

RunLock::~RunLock() {
  // Deleted by a person, it may be another job's by now.
  if (is_current(descriptor_, path_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace redspine
