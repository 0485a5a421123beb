#include "trainer/checkpoint/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "data/io/folders.h"
#include "parallel/group/failure.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/rank_files.h"
#include "trainer/checkpoint/save_plan.h"
#include "trainer/checkpoint/state_check.h"
#include "trainer/checkpoint/tensor_gather.h"
#include "trainer/checkpoint/verify.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::span<const float> in_place(ConstTensorView from, HostBuffer&) { return host_values(from); }

// Host memory for one state of this rank.
struct Snapshot {
  Snapshot(Device& device, const ParameterStore& parameters)
      : values(device, DType::f32, parameters.values().shape()),
        exp_avg(device, DType::f32, {parameters.shares().num_moments()}),
        exp_avg_sq(device, DType::f32, {parameters.shares().num_moments()}) {}

  TrainingTensors views(const TrainingTensors& of) {
    return {.values = values.view(),
            .exp_avg = exp_avg.view(),
            .exp_avg_sq = exp_avg_sq.view(),
            .value_digests = of.value_digests};
  }

  HostTensor values;
  HostTensor exp_avg;
  HostTensor exp_avg_sq;
};

}  // namespace

class CheckpointSaver::Work {
 public:
  Work(SaverOptions options, CheckpointStore store, const ProcessMesh& mesh,
       const ParameterStore& parameters, Device& device)
      : options_(std::move(options)),
        store_(std::move(store)),
        world_(mesh.world().split(0)),
        tensor_axis_(mesh.group(Axis::tensor).split(0)),
        data_axis_(mesh.group(Axis::data).split(0)),
        first_writer_(mesh.shape().first_along(world_.rank(), Axis::tensor)),
        parameters_(parameters),
        device_(device),
        tensors_(stored_tensors(options_.model)),
        plan_(tensors_, world_.size()),
        values_(parameters, tensor_axis_, TensorGather::Of::values),
        moments_(parameters, has_shares() ? world_ : tensor_axis_, TensorGather::Of::moments),
        check_({.world = world_, .data = data_axis_, .tensor = tensor_axis_}, parameters, tensors_,
               store_.folder(), options_.check_replicas) {
    if (options_.mode == SaveMode::asynchronous) {
      snapshot_.emplace(device, parameters);
    }
  }

  ~Work() {
    if (thread_.joinable()) thread_.join();
  }

  void save(const TrainingTensors& tensors, const TrainingRecord& record) {
    const Clock::time_point start = Clock::now();
    wait();
    SaveReport report{.step = record.progress.step,
                      .path = store_.path_of(record.progress.step),
                      .bytes = plan_.total_bytes()};
    if (snapshot_) {
      const TrainingTensors copy = snapshot_->views(tensors);
      for (const StatePart part : kStateParts) {
        device_.download(view_of(copy, part), view_of(tensors, part));
      }
      report.stall_seconds = seconds_since(start);
      thread_ = std::thread([this, copy, record, report, start] {
        write_in_background(copy, record, report, start);
      });
      return;
    }
    write(tensors, record, fetch_from(device_));
    report.seconds = seconds_since(start);
    add_published(report);
    remove_superseded(record.progress);
    published_.back().stall_seconds = seconds_since(start);
  }

  std::vector<SaveReport> take_published() {
    const std::lock_guard lock(published_mutex_);
    return std::exchange(published_, {});
  }

  bool has_failed() const { return has_failed_; }

  void wait() {
    if (thread_.joinable()) thread_.join();
    if (has_failed_) std::rethrow_exception(failure_);
  }

  void forget_failure() {
    if (thread_.joinable()) thread_.join();
    has_failed_ = false;
  }

 private:
  // Whether each data rank has moments that no other has.
  bool has_shares() const { return parameters_.shares().are_apart(); }

  void write_in_background(const TrainingTensors& tensors, const TrainingRecord& record,
                           SaveReport report, Clock::time_point start) {
    try {
      write(tensors, record, in_place);
      report.seconds = seconds_since(start);
      add_published(report);
      remove_superseded(record.progress);
    } catch (...) {
      failure_ = std::current_exception();
      has_failed_ = true;
    }
  }

  void add_published(const SaveReport& report) {
    const std::lock_guard lock(published_mutex_);
    published_.push_back(report);
  }

  void write(const TrainingTensors& tensors, const TrainingRecord& record, const Fetch& fetch) {
    const std::int64_t step = record.progress.step;
    TrainingRecord complete_record = record;
    complete_record.digests = check_.run(tensors, step, fetch);
    run_together(world_, [&] {
      if (world_.rank() == 0) store_.begin(step);
    });
    try {
      const std::map<std::string, ManifestFile> mine = write_tensors(tensors, step, fetch);
      const Manifest manifest = gather_manifest(mine);
      run_together(world_, [&] {
        if (world_.rank() == 0) complete(manifest, complete_record);
      });
    } catch (const CollectiveError&) {
      if (world_.rank() == 0) drop_partial(step);
      throw;
    }
  }

  // What is gathered among the same ranks.
  struct Pass {
    TensorGather& gather;
    std::vector<SavePlan::Round> rounds;
    std::size_t own_place;  // of this rank in a round
  };

  std::vector<Pass> make_passes() {
    constexpr std::array kMoments = {StatePart::exp_avg, StatePart::exp_avg_sq};
    const int num_writers = tensor_axis_.size();
    const auto place = static_cast<std::size_t>(tensor_axis_.rank());
    std::vector<Pass> passes;
    const auto add_pass = [&](std::span<const StatePart> parts) {
      passes.push_back({values_, plan_.rounds(first_writer_, num_writers, parts), place});
    };
    if (!has_shares()) {
      add_pass(kStateParts);
      return passes;
    }
    add_pass(std::array{StatePart::value});
    passes.push_back({moments_, plan_.rounds(0, world_.size(), kMoments),
                      static_cast<std::size_t>(world_.rank())});
    return passes;
  }

  // Whatever goes wrong here, the gathers go on to the end: other ranks depend on them.
  std::map<std::string, ManifestFile> write_tensors(const TrainingTensors& tensors,
                                                    std::int64_t step, const Fetch& fetch) {
    const std::vector<Pass> passes = make_passes();
    std::vector<PlannedTensor> mine;
    for (const Pass& pass : passes) {
      for (const SavePlan::Round& round : pass.rounds) {
        const PlannedTensor* planned = round[pass.own_place];
        if (planned != nullptr) mine.push_back(*planned);
      }
    }
    std::string failure;
    const auto attempt = [&failure](const auto& action) {
      if (!failure.empty()) return;
      try {
        action();
      } catch (const std::exception& error) {
        failure = error.what();
      }
    };
    std::optional<RankFiles> files;
    attempt([&] { files.emplace(store_.partial_path_of(step), plan_, mine); });
    for (const Pass& pass : passes) {
      for (const SavePlan::Round& round : pass.rounds) {
        std::vector<TensorGather::Wanted> wanted;
        for (const PlannedTensor* planned : round) {
          wanted.push_back(
              planned == nullptr
                  ? TensorGather::Wanted{}
                  : TensorGather::Wanted{planned->tensor, view_of(tensors, planned->part)});
        }
        const std::span<const float> values = pass.gather.gather(wanted, fetch);
        const PlannedTensor* own = round[pass.own_place];
        if (own != nullptr) attempt([&] { files->write(*own, values); });
      }
    }
    std::map<std::string, ManifestFile> written;
    attempt([&] { written = files->finish(); });
    if (!failure.empty()) {
      std::int64_t bytes = 0;
      for (const PlannedTensor& planned : mine) bytes += planned.bytes();
      failure += fmt::format("; this rank's share of the checkpoint needs {} bytes, all of it {}",
                             bytes, plan_.total_bytes());
    }
    fail_together(world_, failure);
    return written;
  }

  Manifest gather_manifest(const std::map<std::string, ManifestFile>& mine) const {
    Manifest manifest{.files = mine};
    for (const std::string& text : world_.all_gather(manifest_to_json(manifest))) {
      manifest.files.merge(manifest_from_json(text, "the manifest of a rank").files);
    }
    return manifest;
  }

  // What goes, goes only once the new checkpoint has been read back.
  void remove_superseded(const TrainingProgress& newest) const {
    std::vector<std::string> superseded;
    run_together(world_, [&] {
      if (world_.rank() == 0) superseded = store_.superseded(newest, options_.retention);
    });
    if (world_.sum(superseded.size()) == 0) return;
    const std::string path = store_.path_of(newest.step);
    const auto problems = verify_checkpoint(path, Verification::from_medium, world_);
    if (!problems.empty()) {
      throw CollectiveError(
          fmt::format("{} is damaged right after it was written, so older checkpoints stay: {}",
                      path, problems.front()));
    }
    run_together(world_, [&] {
      for (const std::string& old : superseded) store_.remove(old);
    });
  }

  // Rank 0: the small files, the manifest last, and the name.
  void complete(Manifest manifest, const TrainingRecord& record) const {
    const std::string folder = store_.partial_path_of(record.progress.step);
    const auto add = [&](const std::string& name, const std::string& text) {
      write_text(folder + "/" + name, text);
      manifest.files[name] = {
          .bytes = static_cast<std::int64_t>(text.size()), .hash = hash_text(text), .tensors = {}};
    };
    add("config.json", model_to_json(options_.model));
    add("model.safetensors.index.json", plan_.index_json("model"));
    add("optimizer.safetensors.index.json", plan_.index_json("optimizer"));
    add("training.json", training_to_json(record));
    sync_folder(folder);  // no name may come after the manifest's
    write_text(folder + "/" + kManifestName, manifest_to_json(manifest));
    sync_folder(folder);
    store_.publish(record.progress.step);
  }

  void drop_partial(std::int64_t step) const {
    try {
      remove_folder(store_.partial_path_of(step));
    } catch (const std::exception&) {
      return;  // the next start of the run removes it
    }
  }

  SaverOptions options_;
  CheckpointStore store_;
  ProcessGroup world_;  // all three for this object's use alone, in either thread
  ProcessGroup tensor_axis_;
  ProcessGroup data_axis_;
  int first_writer_;  // world rank of the first in the tensor group
  const ParameterStore& parameters_;
  Device& device_;
  std::vector<StoredTensor> tensors_;
  SavePlan plan_;
  TensorGather values_;   // without shares of moments, these too
  TensorGather moments_;  // of shares
  StateCheck check_;
  std::optional<Snapshot> snapshot_;
  std::atomic<bool> has_failed_ = false;
  std::exception_ptr failure_;
  std::mutex published_mutex_;
  std::vector<SaveReport> published_;
  std::thread thread_;
};

CheckpointSaver::CheckpointSaver(SaverOptions options, CheckpointStore store,
                                 const ProcessMesh& mesh, const ParameterStore& parameters,
                                 Device& device)
    : work_(
          std::make_unique<Work>(std::move(options), std::move(store), mesh, parameters, device)) {}
CheckpointSaver::~CheckpointSaver() = default;

void CheckpointSaver::save(const TrainingTensors& tensors, const TrainingRecord& record) {
  work_->save(tensors, record);
}
std::vector<SaveReport> CheckpointSaver::take_published() { return work_->take_published(); }
bool CheckpointSaver::has_failed() const { return work_->has_failed(); }
void CheckpointSaver::wait() { work_->wait(); }
void CheckpointSaver::forget_failure() { work_->forget_failure(); }

}  // namespace redspine
