#include "trainer/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tensor/error.h"
#include "trainer/checkpoint/files.h"

namespace redspine {
namespace {

// JSON has no word for numbers that are not finite.
nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

bool stays(const nlohmann::json& line, const TrainConfig& config, std::int64_t last_step) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) {
    return false;
  }
  const auto step = line["step"].get<std::int64_t>();
  const std::string kind = line.value("kind", "");
  if (kind == "validation" && !config.is_evaluation_due(step)) return step < last_step;
  if (kind == "train" && line.value("applied", true) && !config.is_log_due(step)) {
    return step < last_step;
  }
  return step <= last_step;
}

// Rewrites the file where it has lines that go.
void keep_lines(const std::string& path, const TrainConfig& config, std::int64_t last_step) {
  std::ifstream file(path);
  std::string kept;
  std::int64_t num_dropped = 0;
  for (std::string line; std::getline(file, line);) {
    const bool is_whole = !file.eof();
    if (is_whole && stays(nlohmann::json::parse(line, nullptr, false), config, last_step)) {
      kept += line + '\n';
    } else {
      ++num_dropped;
    }
  }
  file.close();
  if (num_dropped > 0) replace_text(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, const TrainConfig& config,
                       std::optional<std::int64_t> resumed_step)
    : path_(path) {
  if (resumed_step) keep_lines(path, config, *resumed_step);
  file_.open(path, resumed_step ? std::ios::app : std::ios::trunc);
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

void MetricsLog::write(const SaveReport& report) {
  write_line({{"kind", "checkpoint"},
              {"step", report.step},
              {"path", report.path},
              {"stall_seconds", report.stall_seconds},
              {"bytes", report.bytes}});
}

void MetricsLog::write_event(const std::string& name, std::int64_t step,
                             const nlohmann::ordered_json& more) {
  nlohmann::ordered_json line = {{"kind", "event"}, {"event", name}, {"step", step}};
  line.update(more);
  write_line(line);
}

void MetricsLog::write_line(const nlohmann::ordered_json& object) {
  file_ << object.dump() << '\n' << std::flush;
  if (!file_) throw Error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

}  // namespace redspine
