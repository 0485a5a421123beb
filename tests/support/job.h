// A job as a shell starts it, watched until the last of its processes has ended. Local; one at a
// time: the watching process adopts whatever a job leaves behind, so that nothing of it can hide.
//
// No test may depend on how fast a job or the test itself gets ahead: what is to be met at work
// runs without an end, and limits of time are there for what hangs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace redspine::testing {

/// What a test waits for at most, by default: far more than anything takes, on a slow machine with
/// other work, too.
inline constexpr double kPatienceSeconds = 120.0;

/// `command` with the rights of any user: what takes from root that it may open everything.
std::string unprivileged(const std::string& command);

/// How a job ended.
struct Ended {
  int exit_code = -1;           // as a shell gives it; -1: it had to be killed at the time limit
  double seconds = 0.0;         // until the last of its processes was gone
  std::int64_t peak_bytes = 0;  // the largest resident set of any of its processes
  std::string output;
  std::string errors;
  std::vector<std::string> left_behind;  // processes that outlived it and had to be killed
};

class Job {
 public:
  /// Starts the shell command in `folder`; its output goes to files there. It ignores no signal,
  /// whatever the test was started to ignore.
  Job(const std::string& command, std::filesystem::path folder);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /// Kills what is still there.
  ~Job();

  /// Kills what is still there after `limit_seconds` from now.
  Ended wait(double limit_seconds = kPatienceSeconds);

 private:
  /// Takes note of what has ended; false once nothing is left.
  bool is_anything_left(Ended& ended);

  std::filesystem::path folder_;
  std::chrono::steady_clock::time_point start_;
  pid_t pid_ = -1;  // -1 once reaped
};

}  // namespace redspine::testing
