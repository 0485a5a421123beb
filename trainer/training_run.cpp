#include "trainer/training_run.h"

#include <fmt/format.h>

#include "parallel/failure.h"
#include "trainer/run_log.h"

namespace redspine {
namespace {

// A gradient can be non-finite once in a while; if it stays so, the weights are beyond repair.
constexpr int kMaxSkippedInARow = 10;

bool is_save_due(const Config& config, std::int64_t step) {
  const std::int64_t interval = config.checkpoint.interval;
  return step == config.train.steps || (interval > 0 && step % interval == 0);
}

std::optional<std::int64_t> resumed_step(const RunIdentity& identity) {
  if (!identity.resumed) return std::nullopt;
  return identity.resumed->record.progress.step;
}

class Course {
 public:
  Course(Trainer& trainer, const Config& config, const RunIdentity& identity,
         const RunServices& services)
      : trainer_(trainer),
        config_(config),
        services_(services),
        log_(config, resumed_step(identity), trainer.mesh().world().rank()),
        last_saved_step_(resumed_step(identity)) {
    record_.run_id = identity.run_id;
    record_.num_data_ranks = trainer.mesh().group(Axis::data).size();
    record_.num_tensor_ranks = trainer.mesh().group(Axis::tensor).size();
    record_.settings = identity.settings;
    record_.data = identity.data;
    if (!identity.resumed) return;
    record_.loss = identity.resumed->record.loss;
    record_.validation_loss = identity.resumed->record.validation_loss;
    log_.record_resume(step(), identity.resumed->directory);
  }

  RunEnd run() {
    if (trainer_.progress().is_evaluation_pending) evaluate();
    Requests requests = agree();
    while (step() < config_.train.steps && !requests.stops()) {
      requests = train_step();
      if (config_.train.is_evaluation_due(step())) {
        evaluate();
        requests = agree();
      }
      if (is_save_due(config_, step()) || requests.has(Request::save_file)) save();
    }
    if (step() >= config_.train.steps) {
      finish_saves();
      return RunEnd::finished;
    }
    if (last_saved_step_ != step()) save();
    finish_saves();
    log_.record_stop(step(), requests.stop_cause());
    services_.watch.done(Request::stop_file);
    return RunEnd::stopped;
  }

 private:
  std::int64_t step() const { return trainer_.progress().step; }

  Requests poll() {
    Requests mine = services_.watch.poll();
    if (services_.saver.has_failed()) mine.add(Request::failed_save);
    return mine;
  }
  Requests agree() { return agree_on(poll(), trainer_.mesh().world()); }

  Requests train_step() {
    const StepReport report = trainer_.train_step(poll());
    tell_saves();
    if (report.requests.has(Request::failed_save)) services_.saver.wait();  // throws on all ranks
    log_.record(report);
    services_.watch.step_took(report.seconds);
    record_.loss = report.loss;
    if (trainer_.progress().num_skipped_in_a_row >= kMaxSkippedInARow) {
      throw CollectiveError(
          fmt::format("the gradient was not finite in {} steps in a row, up to "
                      "step {}",
                      kMaxSkippedInARow, report.step));
    }
    return report.requests;
  }

  void evaluate() {
    const std::optional<ValidationReport> report = trainer_.evaluate([this] { return poll(); });
    if (!report) return;
    log_.record(*report);
    record_.validation_loss = report->loss;
  }

  void save() {
    record_.progress = trainer_.progress();
    log_.sync();  // a power cut must not leave a log that ends before its newest checkpoint
    services_.saver.save(trainer_.tensors(), record_);
    services_.watch.done(Request::save_file);
    last_saved_step_ = step();
    tell_saves();
  }

  // Of those that are there by now.
  void tell_saves() {
    for (const SaveReport& report : services_.saver.take_published()) {
      log_.record(report);
      services_.watch.save_took(report.seconds);
    }
  }

  void finish_saves() {
    services_.saver.wait();
    tell_saves();
  }

  Trainer& trainer_;
  const Config& config_;
  RunServices services_;
  RunLog log_;
  TrainingRecord record_;
  std::optional<std::int64_t> last_saved_step_;
};

}  // namespace

std::string run_directory(const RunConfig& config) { return config.output_dir + "/" + config.name; }

std::string metrics_path(const RunConfig& config) {
  return run_directory(config) + "/metrics.jsonl";
}

RunEnd run_training(Trainer& trainer, const Config& config, const RunIdentity& identity,
                    const RunServices& services) {
  return Course(trainer, config, identity, services).run();
}

}  // namespace redspine
