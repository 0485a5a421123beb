#include "trainer/training_run.h"

#include <fmt/format.h>

#include "tensor/error.h"
#include "trainer/console.h"
#include "trainer/metrics.h"

namespace redspine {
namespace {

// A gradient can be non-finite once in a while; if it stays so, the weights are beyond repair.
constexpr int kMaxSkippedInARow = 10;

// The outputs of a run, which rank 0 has.
class Output {
 public:
  explicit Output(const Config& config)
      : config_(config), metrics_(metrics_path(config.run)), console_(config.train.steps) {}

  void record(const StepReport& report) {
    const bool is_due = report.step % config_.train.log_interval == 0 || report.step == 1 ||
                        report.step == config_.train.steps || !report.applied;
    if (!is_due) return;
    metrics_.write(report);
    if (!report.applied) metrics_.write_skipped_step(report.step);
    console_.show(report);
  }
  void record(const ValidationReport& report) {
    metrics_.write(report);
    console_.show(report);
  }

 private:
  const Config& config_;
  MetricsLog metrics_;
  Console console_;
};

bool is_evaluation_due(const TrainConfig& config, std::int64_t step) {
  return config.eval_interval > 0 && (step % config.eval_interval == 0 || step == config.steps);
}

}  // namespace

std::string run_directory(const RunConfig& config) { return config.output_dir + "/" + config.name; }

std::string metrics_path(const RunConfig& config) {
  return run_directory(config) + "/metrics.jsonl";
}

void run_training(Trainer& trainer, const Config& config) {
  std::optional<Output> output;
  if (trainer.mesh().world().rank() == 0) output.emplace(config);
  int num_skipped_in_a_row = 0;
  while (trainer.step() < config.train.steps) {
    const StepReport report = trainer.train_step();
    if (output) output->record(report);
    num_skipped_in_a_row = report.applied ? 0 : num_skipped_in_a_row + 1;
    if (num_skipped_in_a_row == kMaxSkippedInARow) {
      throw Error(fmt::format("the gradient was not finite in {} steps in a row, up to step {}",
                              kMaxSkippedInARow, report.step));
    }
    if (is_evaluation_due(config.train, report.step)) {
      const std::optional<ValidationReport> validation = trainer.evaluate();
      if (output && validation) output->record(*validation);
    }
  }
}

}  // namespace redspine
