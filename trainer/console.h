// What a run shows on standard output, from rank 0: on a terminal one progress line, updated in
// place; elsewhere whole plain lines.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/report.h"

namespace redspine {

class Console {
 public:
  explicit Console(std::int64_t num_steps);
  /// Ends an unfinished progress line.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// A line of its own.
  void say(const std::string& text);
  void show(const StepReport& report);
  void show(const ValidationReport& report);

 private:
  void clear_progress();

  std::int64_t num_steps_;
  bool is_terminal_;
  bool has_progress_ = false;
  std::int64_t num_shown_ = 0;  // lines of steps
  double mean_seconds_ = 0.0;   // of a step, exponential average; for the remaining time
};

/// "1d 02:03:04" or "02:03:04" or "03:04".
std::string format_duration(double seconds);

}  // namespace redspine
