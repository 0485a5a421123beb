// Preloaded into a program: counts the calls by which it changes what lies below a folder, and ends
// the process with SIGKILL at the N-th, before it or in the middle of it. Or writes every call
// down. What is after a call is before the next one: nothing else of a process outlives it.
//
// Settings are environment variables:
//   CRASH_BELOW   the folder, without symbolic links
//   CRASH_RANK    only on this rank of the job; not given: on all
//   CRASH_FROM    counting begins with the first path that contains this text
//   CRASH_UNTIL   the process ends at the first path that contains this text, if it still lives
//   CRASH_CALL    which call ends the process, from 1
//   CRASH_HALF    given: in the middle of it, where it writes; other calls it ends before
//   CRASH_REPORT  the file that says how it ended: "write PATH", or "survived"
//   CRASH_LOG     the file that takes a line per call: RANK CALL PATH, and the new path of a
//                 rename; also of those that let the system forget what it remembers of a file
//   CRASH_FLIP    a bit of every write of tensors to a file whose path contains this text is wrong
//   HOLD_READS    from which read on, from 1, each waits until the file HOLD_UNTIL is there and
//                 then takes a while, so that other threads come in; reads are written down, too

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

namespace {

std::string setting(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// By system calls: the functions of these names are the ones that are watched.
void append_line(const std::string& path, const std::string& line) {
  constexpr int kMode = 0666;
  const auto file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_APPEND, kMode));
  if (file < 0 || syscall(SYS_write, file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

/// Where the N-th call is, and what to do there.
class Trap {
 public:
  /// The path that a call names, if it lies below the folder.
  std::optional<std::string> watched(const char* name) const {
    if (!is_set_ || name == nullptr) return std::nullopt;
    std::string path = name;
    if (path.empty() || path.front() != '/') {
      std::array<char, PATH_MAX> folder{};
      if (getcwd(folder.data(), folder.size()) == nullptr) return std::nullopt;
      path = std::string(folder.data()) + "/" + path;
    }
    if (!path.starts_with(below_)) return std::nullopt;
    return path;
  }
  std::optional<std::string> watched(int file) const {
    if (!is_set_) return std::nullopt;
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    std::array<char, PATH_MAX> path{};
    if (readlink(link.c_str(), path.data(), path.size() - 1) <= 0) return std::nullopt;
    return watched(path.data());
  }

  enum class Action { call_it, call_half_of_it };

  /// To be asked before every call that is watched; may not return.
  Action before(const std::string& call, const std::string& path, const std::string& more = "") {
    const std::lock_guard lock(mutex_);
    if (!log_.empty()) append_line(log_, rank_ + " " + call + " " + path + " " + more + "\n");
    if (!until_.empty() && path.find(until_) != std::string::npos) end("survived");
    if (path.find(from_) != std::string::npos) is_counting_ = true;
    if (!is_counting_ || ++num_calls_ != call_) return Action::call_it;
    if (is_half_ && call == "write") return Action::call_half_of_it;
    end(call + " " + path);
  }

  /// To be asked before every read.
  void hold(const std::string& path) {
    constexpr useconds_t kPollMicroseconds = 1000;
    constexpr useconds_t kLongMicroseconds = 100'000;
    if (held_from_ == 0) return;
    note("read", path);
    if (++num_reads_ < held_from_) return;
    while (access(hold_until_.c_str(), F_OK) != 0) usleep(kPollMicroseconds);
    usleep(kLongMicroseconds);
  }
  /// Into the log alone: it changes nothing.
  void note(const std::string& call, const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (!log_.empty()) append_line(log_, rank_ + " " + call + " " + path + "\n");
  }
  bool flips(const std::string& path) const {
    return !flip_.empty() && path.find(flip_) != std::string::npos && path.ends_with("tensors");
  }

  [[noreturn]] void end(const std::string& report) const {
    if (!report_.empty()) append_line(report_, report + "\n");
    kill(getpid(), SIGKILL);
    std::abort();
  }

 private:
  std::string rank_ = setting("OMPI_COMM_WORLD_RANK", "0");
  std::string below_ = setting("CRASH_BELOW");
  std::string from_ = setting("CRASH_FROM");
  std::string until_ = setting("CRASH_UNTIL");
  std::string report_ = setting("CRASH_REPORT");
  std::string log_ = setting("CRASH_LOG");
  std::string flip_ = setting("CRASH_FLIP");
  std::string hold_until_ = setting("HOLD_UNTIL");
  long held_from_ = std::atol(setting("HOLD_READS", "0").c_str());
  long call_ = std::atol(setting("CRASH_CALL", "0").c_str());
  bool is_half_ = !setting("CRASH_HALF").empty();
  bool is_set_ = !below_.empty() && setting("CRASH_RANK", rank_.c_str()) == rank_;

  std::mutex mutex_;
  bool is_counting_ = false;
  long num_calls_ = 0;
  std::atomic<long> num_reads_ = 0;
};

Trap& trap() {
  static Trap trap;
  return trap;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void before(const char* call, const std::optional<std::string>& path) {
  if (path) trap().before(call, *path);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  static const auto original = next<ssize_t(int, const void*, size_t)>("write");
  const auto path = trap().watched(file);
  if (path && trap().before("write", *path) == Trap::Action::call_half_of_it) {
    if (original(file, bytes, size / 2) >= 0) trap().end("half a write " + *path);
  }
  const bool is_header = lseek(file, 0, SEEK_CUR) == 0;
  if (path && trap().flips(*path) && !is_header && size > 0) {
    std::string wrong(static_cast<const char*>(bytes), size);
    wrong.back() = static_cast<char>(wrong.back() ^ 1);
    return original(file, wrong.data(), size);
  }
  return original(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  static const auto original = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const auto path = trap().watched(file);
  if (path && trap().before("write", *path) == Trap::Action::call_half_of_it) {
    if (original(file, bytes, size / 2, offset) >= 0) trap().end("half a write " + *path);
  }
  return original(file, bytes, size, offset);
}

ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  static const auto original = next<ssize_t(int, void*, size_t, off_t)>("pread");
  if (const auto path = trap().watched(file)) trap().hold(*path);
  return original(file, bytes, size, offset);
}

int posix_fadvise(int file, off_t offset, off_t size, int advice) noexcept {
  static const auto original = next<int(int, off_t, off_t, int)>("posix_fadvise");
  const auto path = trap().watched(file);
  if (path && advice == POSIX_FADV_DONTNEED) trap().note("forget", *path);
  return original(file, offset, size, advice);
}

int fsync(int file) {
  static const auto original = next<int(int)>("fsync");
  before("fsync", trap().watched(file));
  return original(file);
}

int rename(const char* from, const char* to) noexcept {
  static const auto original = next<int(const char*, const char*)>("rename");
  if (const auto path = trap().watched(from)) {
    trap().before("rename", *path, trap().watched(to).value_or(to));
  }
  return original(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto original = next<int(const char*, mode_t)>("mkdir");
  before("mkdir", trap().watched(path));
  return original(path, mode);
}

int unlink(const char* path) noexcept {
  static const auto original = next<int(const char*)>("unlink");
  before("unlink", trap().watched(path));
  return original(path);
}

int rmdir(const char* path) noexcept {
  static const auto original = next<int(const char*)>("rmdir");
  before("rmdir", trap().watched(path));
  return original(path);
}

int open(const char* path, int flags, ...) {
  static const auto original = next<int(const char*, int, ...)>("open");
  if ((flags & O_CREAT) == 0) return original(path, flags);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  before("create", trap().watched(path));
  return original(path, flags, mode);
}

}  // extern "C"
