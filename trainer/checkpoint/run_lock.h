// One job per run directory: RUN/lock names its holder, by host and process, as long as it runs.
// Local; rank 0 holds it for the job.
#pragma once

#include <string>

namespace redspine {

class RunLock {
 public:
  /// Takes the lock. ConfigError ("run.name") where another job has it, with host and process. A
  /// lock whose holder is dead (same host, or an earlier start of the same Slurm job, by its count
  /// of restarts) is taken over; `takeover()` then says whose it was.
  explicit RunLock(const std::string& run_directory);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();  // gives it back

  /// ConfigError where the constructor would throw it, with nothing written or taken.
  static void check_free(const std::string& run_directory);

  const std::string& takeover() const { return takeover_; }  // empty: it was free

 private:
  std::string path_;
  std::string takeover_;
  int descriptor_ = -1;
};

}  // namespace redspine
