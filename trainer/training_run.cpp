#include "trainer/training_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "data/io/folders.h"
#include "parallel/group/failure.h"
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

class TrainingLoop {
 public:
  TrainingLoop(Trainer& trainer, const Config& config, const RunIdentity& identity,
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
    try {
      if (const std::optional<RunEnd> end = run_in_directory()) return *end;
    } catch (const CollectiveError&) {
      if (!is_lost(agree())) throw;
    }
    make_directory_again();
    throw CollectiveError(
        fmt::format("{} or what a run needs in it was deleted while the run was at work; it was "
                    "made again, with metrics.jsonl and a checkpoint of step {}",
                    run_directory(config_.run), step()));
  }

 private:
  const ProcessGroup& world() const { return trainer_.mesh().world(); }
  std::int64_t step() const { return trainer_.progress().step; }
  std::int64_t num_skipped() const { return trainer_.progress().num_skipped_in_a_row; }
  bool is_finished() const { return step() >= config_.train.steps; }
  static bool is_lost(const Requests& requests) { return requests.has(Request::lost_directory); }

  Requests poll() {
    Requests mine = services_.watch.poll();
    if (services_.saver.has_failed()) mine.add(Request::failed_save);
    if (log_.is_lost() || is_folder_lost()) mine.add(Request::lost_directory);
    return mine;
  }
  Requests agree() { return agree_on(poll(), world()); }

  // Nothing where the directory is lost.
  std::optional<RunEnd> run_in_directory() {
    if (trainer_.progress().is_evaluation_pending) evaluate();
    Requests requests = agree();
    bool is_due = false;
    while (!is_finished() && !requests.stops() && !is_lost(requests)) {
      requests = train_step();
      if (config_.train.is_evaluation_due(step())) {
        evaluate();
        requests = agree();
      }
      is_due = is_due || is_save_due(config_, step()) || requests.has(Request::save_file);
      if (is_due && num_skipped() == 0) {
        save();
        is_due = false;
      }
    }
    if (is_lost(requests)) return std::nullopt;
    const std::string remark = num_skipped() == 0 ? end() : end_in_doubt();
    requests = agree();
    if (is_lost(requests)) return std::nullopt;
    return conclude(requests, remark);
  }

  bool is_folder_lost() const {
    return world().rank() == 0 && ::access(services_.store.folder().c_str(), F_OK) != 0;
  }

  Requests train_step() {
    const StepReport report = trainer_.train_step(poll());
    record_saves();
    // Before anything ends the loop: a checkpoint may be made of this step yet.
    log_.record(report);
    if (report.requests.has(Request::failed_save)) services_.saver.wait();  // throws on all ranks
    services_.watch.step_took(report.seconds);
    if (services_.on_step) services_.on_step(report);
    record_.loss = report.loss;
    if (num_skipped() >= kMaxSkippedInARow) {
      throw CollectiveError(describe_skips() + "; " + retreat());
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
    record_saves();
  }

  // Of those that are there by now.
  void record_saves() {
    for (const SaveReport& report : services_.saver.take_published()) {
      log_.record(report);
      services_.watch.save_took(report.seconds);
    }
  }

  void finish_saves() {
    services_.saver.wait();
    record_saves();
  }

  std::string describe_skips() const {
    return fmt::format("the gradient was not finite in {} steps in a row, up to step {}",
                       num_skipped(), step());
  }

  // The ways to the end; what there is to say about it.
  std::string end() {
    if (last_saved_step_ != step()) save();
    finish_saves();
    return "";
  }
  std::string end_in_doubt() {
    // The last weights, so that they are not lost; a stop has them from what it goes on from.
    const bool has_to_save = is_finished() ? last_saved_step_ != step() : !last_saved_step_;
    if (has_to_save) save();
    std::string remark = describe_skips() + "; " + retreat();
    if (is_finished()) throw CollectiveError(remark);
    return remark;
  }

  RunEnd conclude(const Requests& requests, const std::string& remark) {
    if (!is_finished()) log_.record_stop(step(), requests.stop_cause());
    log_.sync();
    if (is_finished()) return RunEnd::finished;
    if (!remark.empty()) log_.say(remark);
    services_.watch.done(Request::stop_file);
    return RunEnd::stopped;
  }

  // Back to what an applied step has shown to be good; says what that is.
  std::string retreat() {
    finish_saves();
    std::string remark;
    run_together(world(), [&] {
      if (world().rank() != 0) return;
      const CheckpointStore& store = services_.store;
      const std::int64_t last_applied = trainer_.progress().last_applied_step();
      const std::optional<std::int64_t> good = store.newest_before(last_applied);
      if (!good) {
        remark = fmt::format("{} has no checkpoint from before", store.folder());
        return;
      }
      for (const std::int64_t doubtful : store.steps()) {
        if (doubtful < last_applied) continue;
        const std::string path = store.path_of(doubtful);
        log_.say(fmt::format("{}: set aside as {}", path, store.set_aside(doubtful)));
      }
      remark = fmt::format("the last good checkpoint is {}", store.path_of(*good));
    });
    return world().all_gather(remark).front();
  }

  // A folder of many files takes a while to delete, and takes what is written meanwhile with it. So
  // what was made is looked at once more when it has lain there for a while.
  void make_directory_again() {
    constexpr int kMaxTries = 10;
    for (int tries = 1;; ++tries) {
      services_.saver.forget_failure();
      make_directory();
      try {
        if (!is_step_saved()) save();
        finish_saves();
      } catch (const CollectiveError&) {
        if (tries == kMaxTries) throw;
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
      if (tries == kMaxTries || (!is_lost(agree()) && is_step_saved())) return;
    }
  }

  void make_directory() {
    run_together(world(), [&] {
      if (world().rank() != 0) return;
      std::filesystem::create_directories(services_.store.folder());
      log_.restore();
      replace_text(run_id_path(config_.run), record_.run_id + "\n");
    });
  }

  bool is_step_saved() const {
    const bool is_there =
        world().rank() == 0 && ::access(services_.store.path_of(step()).c_str(), F_OK) == 0;
    return world().sum(is_there ? 1 : 0) > 0;
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

std::string run_id_path(const RunConfig& config) { return run_directory(config) + "/run_id"; }

RunEnd run_training(Trainer& trainer, const Config& config, const RunIdentity& identity,
                    const RunServices& services) {
  return TrainingLoop(trainer, config, identity, services).run();
}

}  // namespace redspine
