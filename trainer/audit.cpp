#include "trainer/audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/printable.h"
#include "trainer/checkpoint/file_digests.h"
#include "trainer/checkpoint/state_check.h"

namespace redspine {
namespace {

class Auditor {
 public:
  Auditor(Trainer& trainer, Device& device, const AuditedRun& run, std::int64_t last)
      : trainer_(trainer),
        device_(device),
        run_(run),
        last_(last),
        world_(trainer.mesh().world()),
        stored_(stored_tensors(run.config.model)),
        state_({.world = world_,
                .data = trainer.mesh().group(Axis::data),
                .tensor = trainer.mesh().group(Axis::tensor)},
               trainer.model().parameters(), stored_, run.store.folder(),
               run.config.run.check_replicas) {}

  AuditResult run() {
    compare_start();
    while (trainer_.step() < last_ && !is_over()) {
      compare_step(trainer_.train_step());
      if (is_saved(trainer_.step())) compare_tensors();
    }
    result_.last_step = trainer_.step();
    return result_;
  }

 private:
  bool is_saved(std::int64_t step) const {
    return std::binary_search(run_.saved_steps.begin(), run_.saved_steps.end(), step);
  }

  // What differs has been found, and so has its tensor or that no checkpoint can tell it.
  bool is_over() const {
    if (result_.differences.empty()) return false;
    const auto next =
        std::upper_bound(run_.saved_steps.begin(), run_.saved_steps.end(), trainer_.step());
    return has_compared_tensors_ || next == run_.saved_steps.end() || *next > last_;
  }

  // What the files say is the same for all; rank 0 reads it.
  void note(const std::string& difference) {
    const std::string text = world_.all_gather(difference).front();
    if (!text.empty()) result_.differences.push_back(text);
  }

  void compare_start() {
    const Digest digest = trainer_.weights_digest();
    const std::int64_t step = trainer_.step();
    std::string difference;
    if (run_.metrics.has(step)) difference = run_.metrics.differences(step, digest);
    if (!difference.empty()) {
      difference = fmt::format("step {}, where the replay starts: {}", step, difference);
    }
    note(difference);
  }

  void compare_step(const StepReport& report) {
    const bool has_line = run_.metrics.has(report.step);
    const bool is_due = run_.config.train.is_log_due(report.step) || !report.applied;
    std::string difference;
    if (has_line) {
      ++result_.num_lines;
      difference = run_.metrics.differences(report);
    } else if (is_due) {
      difference = "has no line in metrics.jsonl";
    }
    // After the first difference all steps are expected to have one.
    if (!result_.differences.empty()) difference.clear();
    if (!difference.empty()) difference = fmt::format("step {}: {}", report.step, difference);
    note(difference);
  }

  void compare_tensors() {
    const std::string directory = run_.store.path_of(trainer_.step());
    const StateDigests mine = state_.run(trainer_.tensors(), trainer_.step(), fetch_from(device_));
    const StateDigests stored = digests_of_files(directory, world_);
    result_.checkpoints.push_back(directory);
    has_compared_tensors_ = has_compared_tensors_ || !result_.differences.empty();
    const std::vector<std::string> names = different_tensors(run_.config.model, stored, mine);
    if (names.empty()) return;
    has_compared_tensors_ = true;
    std::string others;
    if (names.size() > 1) {
      others = fmt::format(", and {}", counted(names.size() - 1, "more tensor"));
    }
    note(fmt::format("{}: the tensor {} has the digest {}, {} in the replay{}", directory,
                     names.front(), stored.tensors.at(names.front()).text(),
                     mine.tensors.at(names.front()).text(), others));
  }

  Trainer& trainer_;
  Device& device_;
  const AuditedRun& run_;
  std::int64_t last_;
  const ProcessGroup& world_;
  std::vector<StoredTensor> stored_;
  StateCheck state_;
  bool has_compared_tensors_ = false;  // after something differed
  AuditResult result_;
};

}  // namespace

AuditResult audit(Trainer& trainer, Device& device, const AuditedRun& run, std::int64_t last) {
  return Auditor(trainer, device, run, last).run();
}

}  // namespace redspine
