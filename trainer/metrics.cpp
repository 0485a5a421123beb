#include "trainer/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tensor/error.h"

namespace redspine {
namespace {

// JSON has no word for numbers that are not finite.
nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path) : path_(path), file_(path, std::ios::trunc) {
  if (!file_) throw Error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void MetricsLog::write(const StepReport& report) {
  write_line({{"kind", "train"},
              {"step", report.step},
              {"loss", number(report.loss)},
              {"grad_norm", number(report.gradient_norm)},
              {"learning_rate", report.learning_rate},
              {"tokens", report.tokens},
              {"samples", report.samples},
              {"batch_hash", fmt::format("{:016x}", report.batch_hash)},
              {"applied", report.applied},
              {"seconds", report.seconds},
              {"tokens_per_second", report.tokens_per_second},
              {"tflops_per_rank", report.tflops_per_rank},
              {"mfu", nullptr}});  // a CPU's peak is not known
}

void MetricsLog::write(const ValidationReport& report) {
  write_line({{"kind", "validation"},
              {"step", report.step},
              {"loss", number(report.loss)},
              {"tokens", report.tokens}});
}

void MetricsLog::write_line(const nlohmann::ordered_json& object) {
  file_ << object.dump() << '\n' << std::flush;
  if (!file_) throw Error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

}  // namespace redspine
