// RUN/metrics.jsonl: what a run measured, one JSON object per line, written by rank 0, a
// line at a time. Numbers print as the shortest text that reads back to the same bits; numbers that
// are not finite print as strings ("nan", "inf", "-inf").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/io/file.h"
#include "trainer/checkpoint/save_report.h"
#include "trainer/config.h"
#include "trainer/report.h"

namespace redspine {

/// The line of a step, without its end; the keys up to "seconds" are the same in any run of the
/// same steps.
std::string training_line(const StepReport& report);

class MetricsLog {
 public:
  /// Starts a new file, or goes on with the one that is there, as an uninterrupted run would have
  /// written it: without what it says of steps after `resumed_step`, without lines that are there
  /// only because the run was to end at that step, and without lines that a crash cut short.
  /// Throws Error where it cannot be written.
  MetricsLog(const std::string& path, const TrainConfig& config,
             std::optional<std::int64_t> resumed_step);

  void write(const StepReport& report);
  void write(const ValidationReport& report);
  void write(const SaveReport& report);
  /// The event that a step's gradient was not finite and the parameters stayed as they were.
  void write_skipped_step(std::int64_t step);
  /// That the run goes on after `step` from a checkpoint, and that it stops there on request.
  void write_resume(std::int64_t step, const std::string& directory);
  void write_stop(std::int64_t step, const std::string& cause);
  /// Returns once all lines are on the medium.
  void sync();
  /// Whether the file was deleted or moved, or is another one by now.
  bool is_lost() const;
  /// Writes a file that was deleted again, as it was. Throws Error where there is another.
  void restore();

 private:
  void write_line(const std::string& object);

  File file_;
};

}  // namespace redspine
