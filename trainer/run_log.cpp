#include "trainer/run_log.h"

#include <fmt/format.h>

#include "trainer/training_run.h"

namespace redspine {

RunLog::Outputs::Outputs(const Config& config, std::optional<std::int64_t> resumed_step)
    : metrics(metrics_path(config.run), config.train, resumed_step), console(config.train.steps) {}

RunLog::RunLog(const Config& config, std::optional<std::int64_t> resumed_step, int rank)
    : config_(config) {
  if (rank == 0) outputs_.emplace(config, resumed_step);
}

void RunLog::record(const StepReport& report) {
  if (!outputs_) return;
  const StepReport line = untold_ ? with_times_of(*untold_, report) : report;
  untold_ = line;
  if (report.applied && !config_.train.is_log_due(report.step)) return;
  untold_.reset();
  outputs_->metrics.write(line);
  if (!report.applied) outputs_->metrics.write_skipped_step(report.step);
  outputs_->console.show(line);
}

void RunLog::record(const ValidationReport& report) {
  if (!outputs_) return;
  outputs_->metrics.write(report);
  outputs_->console.show(report);
}

void RunLog::record(const SaveReport& report) {
  if (!outputs_) return;
  outputs_->metrics.write(report);
  outputs_->console.say(fmt::format("saved {}  {:.1f} MB, training stood still for {:.3f} s",
                                    report.path, static_cast<double>(report.bytes) * 1e-6,
                                    report.stall_seconds));
}

void RunLog::record_resume(std::int64_t step, const std::string& directory) {
  if (!outputs_) return;
  outputs_->metrics.write_resume(step, directory);
}

void RunLog::record_stop(std::int64_t step, const std::string& cause) {
  if (!outputs_) return;
  outputs_->metrics.write_stop(step, cause);
  outputs_->console.say(fmt::format("stopped after step {} on request ({})", step, cause));
}

void RunLog::say(const std::string& text) {
  if (outputs_) outputs_->console.say(text);
}

bool RunLog::is_lost() const { return outputs_ && outputs_->metrics.is_lost(); }

void RunLog::restore() {
  if (outputs_) outputs_->metrics.restore();
}

void RunLog::sync() {
  if (outputs_) outputs_->metrics.sync();
}

}  // namespace redspine
