// What a run shows on standard output, from rank 0: on a terminal one progress line, updated in
// place; elsewhere whole plain lines.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/report.h"

namespace redspine {

/// To standard output, at once. A run goes on without its console: where that cannot be written (a
/// reader that is gone, a full disk), standard error is told the cause, and nothing is written from
/// then on. On rank 0.
void write_console(std::string_view text);

template <class... Args>
void print_console(fmt::format_string<Args...> format, Args&&... args) {
  write_console(fmt::format(format, std::forward<Args>(args)...));
}

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
  std::int64_t num_steps_;
  bool is_terminal_;
  bool has_progress_ = false;
  std::int64_t num_shown_ = 0;  // lines of steps
  double mean_seconds_ = 0.0;   // of a step, exponential average; for the remaining time
};

/// "1d 02:03:04" or "02:03:04" or "03:04".
std::string format_duration(double seconds);

}  // namespace redspine
