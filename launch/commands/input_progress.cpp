#include "launch/commands/input_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "data/io/output.h"
#include "trainer/console.h"

namespace redspine {

ProgressLine::ProgressLine(std::string action)
    : action_(std::move(action)), is_terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) print_error("\r\033[K");
}

void ProgressLine::show(const InputProgress& progress) {
  const auto done = static_cast<double>(progress.num_bytes);
  const auto total = static_cast<double>(progress.total_bytes);
  const std::string speed = format_bytes(progress.seconds > 0 ? done / progress.seconds : 0.0);
  if (total <= 0) {
    write(fmt::format("{} read, {}/s", format_bytes(done), speed));
    return;
  }
  const double left = done > 0 ? progress.seconds * (total - done) / done : 0.0;
  write(fmt::format("{:.1f}% of {}, {}/s, left {}", 100.0 * done / total, format_bytes(total),
                    speed, format_duration(left)));
}

void ProgressLine::show(std::int64_t done, std::int64_t wanted) {
  write(fmt::format("{} of {}", done, wanted));
}

void ProgressLine::write(const std::string& text) {
  if (!is_terminal_) return;
  print_error("\r\033[K{}: {}", action_, text);
  is_shown_ = true;
}

void print_left_out(const std::vector<std::string>& files) {
  if (files.empty()) return;
  print_out("{} files left out of the inputs, being this command's own: {}\n", files.size(),
            fmt::join(files, ", "));
}

std::string format_bytes(double num_bytes) {
  constexpr std::array kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (num_bytes >= 1000.0 && unit + 1 < kUnits.size()) {
    num_bytes /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", num_bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace redspine
