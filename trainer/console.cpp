#include "trainer/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

#include "data/io/output.h"
#include "parallel/group/process_group.h"
#include "tensor/error.h"
#include "tensor/printable.h"

namespace redspine {
namespace {

constexpr const char* kClearLine = "\r\033[K";

/// Whether a person reads standard output. mpirun gives every rank a terminal of its own, without a
/// size, whatever mpirun itself writes to; so it is asked where its output goes.
bool is_shown_on_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return true;
  const std::string launcher_output = fmt::format("/proc/{}/fd/1", getppid());
  const int file = open(launcher_output.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return false;
  const bool is_terminal = isatty(file) != 0;
  close(file);
  return is_terminal;
}

// Whatever is still written to standard output goes nowhere, and without an error.
void leave_standard_output() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

}  // namespace

void write_console(std::string_view text) {
  try {
    write_out(text);
    flush_out();
  } catch (const Error& error) {
    leave_standard_output();
    print_error("[rank 0 @ {}] warning: {}; the run goes on without its console\n",
                ProcessGroup::host_name(), error.what());
  }
}

Console::Console(std::int64_t num_steps)
    : num_steps_(num_steps), is_terminal_(is_shown_on_terminal()) {}

Console::~Console() {
  if (has_progress_) write_console("\n");
}

void Console::say(const std::string& text) {
  print_console("{}{}\n", has_progress_ ? kClearLine : "", one_line(text));
  has_progress_ = false;
}

void Console::show(const StepReport& report) {
  // The first steps are slower than the rest, so the average starts from the newest value.
  constexpr double kKeep = 0.9;
  ++num_shown_;
  const double seconds = report.seconds / static_cast<double>(report.num_steps);
  mean_seconds_ = num_shown_ <= 2 ? seconds : kKeep * mean_seconds_ + (1.0 - kKeep) * seconds;
  const double left = mean_seconds_ * static_cast<double>(num_steps_ - report.step);
  const std::string line = fmt::format(
      "step {:>{}}/{}  loss {:.4f}  grad norm {:.3f}  lr {:.2e}  {:.0f} tokens/s  left {}{}",
      report.step, fmt::formatted_size("{}", num_steps_), num_steps_, report.loss,
      report.gradient_norm, report.learning_rate, report.tokens_per_second, format_duration(left),
      report.applied ? "" : "  SKIPPED: gradient not finite");
  if (is_terminal_ && report.applied) {
    print_console("{}{}", has_progress_ ? kClearLine : "", line);
    has_progress_ = true;
  } else {
    say(line);
  }
}

void Console::show(const ValidationReport& report) {
  say(fmt::format("step {:>{}}/{}  validation loss {:.4f}  perplexity {:.2f}  ({} tokens)",
                  report.step, fmt::formatted_size("{}", num_steps_), num_steps_, report.loss,
                  std::exp(report.loss), report.tokens));
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = total / 86400;
  const std::int64_t hours = total / 3600 % 24;
  const std::string rest = fmt::format("{:02}:{:02}", total / 60 % 60, total % 60);
  if (days > 0) return fmt::format("{}d {:02}:{}", days, hours, rest);
  return hours > 0 ? fmt::format("{:02}:{}", hours, rest) : rest;
}

}  // namespace redspine
