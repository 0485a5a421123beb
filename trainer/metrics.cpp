#include "trainer/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "tensor/error.h"

namespace redspine {
namespace {

// fmt gives the shortest text of a number. JSON has no word for those that are not finite, and the
// sign of a NaN says nothing.
std::string number(double value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return fmt::format("\"{}\"", std::isnan(value) ? std::abs(value) : value);
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path) : path_(path), file_(path, std::ios::trunc) {
  if (!file_) throw Error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void MetricsLog::write(const StepReport& report) {
  // A CPU's peak is not known, so there is no utilisation ("mfu").
  write_line(fmt::format(
      R"({{"kind":"train","step":{},"loss":{},"grad_norm":{},"learning_rate":{},"tokens":{},)"
      R"("samples":{},"batch_hash":"{:016x}","applied":{},"seconds":{},"tokens_per_second":{},)"
      R"("tflops_per_rank":{},"mfu":null}})",
      report.step, number(report.loss), number(report.gradient_norm), number(report.learning_rate),
      report.tokens, report.samples, report.batch_hash, report.applied, number(report.seconds),
      number(report.tokens_per_second), number(report.tflops_per_rank)));
}

void MetricsLog::write(const ValidationReport& report) {
  write_line(fmt::format(R"({{"kind":"validation","step":{},"loss":{},"tokens":{}}})", report.step,
                         number(report.loss), report.tokens));
}

void MetricsLog::write_skipped_step(std::int64_t step) {
  write_line(fmt::format(R"({{"kind":"event","step":{},"event":"skipped_step"}})", step));
}

void MetricsLog::write_line(const std::string& object) {
  file_ << object << '\n' << std::flush;
  if (!file_) throw Error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

}  // namespace redspine
