// RUN/metrics.jsonl: what a run measured, one JSON object a line, written by rank 0 and flushed a
// line at a time. Numbers print as the shortest text that reads back to the same bits; numbers that
// are not finite print as strings ("nan", "inf", "-inf").
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "trainer/report.h"

namespace redspine {

class MetricsLog {
 public:
  /// Starts a new file. Throws Error where it cannot be written.
  explicit MetricsLog(const std::string& path);

  void write(const StepReport& report);
  void write(const ValidationReport& report);
  /// The event that a step's gradient was not finite and the parameters stayed as they were.
  void write_skipped_step(std::int64_t step);

 private:
  void write_line(const std::string& object);

  std::string path_;
  std::ofstream file_;
};

}  // namespace redspine
