#include "trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "model/flops.h"
#include "parallel/group/failure.h"
#include "parallel/mesh/gradient_norm.h"
#include "tensor/denormals.h"
#include "trainer/batch_hash.h"
#include "trainer/checkpoint/state_digests.h"
#include "trainer/optimizer/schedule.h"

namespace redspine {
namespace {

TrainingDataOptions training_data_options(const Config& config) {
  return {.sequence_length = config.batch.sequence_length,
          .vocab_size = config.model.vocab_size,
          .global_batch_size = config.batch.global_batch_size,
          .seed = config.run.seed};
}

std::optional<ValidationData> open_validation(const Config& config) {
  if (config.train.eval_interval == 0 || config.data.validation.empty()) return std::nullopt;
  return ValidationData(config.data, config.batch.sequence_length, config.model.vocab_size);
}

MicroBatchShape micro_batch_shape(const BatchConfig& batch) {
  return {.num_sequences = batch.micro_batch_size, .sequence_length = batch.sequence_length};
}

PrefetcherOptions prefetcher_options(const Config& config, const ProcessGroup& data_axis,
                                     std::int64_t samples_consumed) {
  return {.samples_consumed = samples_consumed,
          .global_batch_size = config.batch.global_batch_size,
          .data_rank = data_axis.rank(),
          .num_data_ranks = data_axis.size()};
}

// A sum of a step, and with it what the ranks were asked and what they read: first over the data
// axis, then, of another value, over the tensor axis, which makes it the world's.
struct StepSums {
  ScalarSum value;
  Requests requests;
  std::uint64_t batch_hash;

  void add_over_data(const ProcessGroup& axis) {
    batch_hash = hash_of(add(axis, parts_of(batch_hash)));
  }
  /// Whether all tensor ranks have read the same: one answer in the world, as each rank of a data
  /// axis has the same sum of hashes by now.
  bool add_over_tensor(const ProcessGroup& axis) {
    return are_equal(add(axis, moments_of(batch_hash)), axis.size());
  }

 private:
  /// Gives `hash`, added up with the others.
  template <std::size_t size>
  std::array<double, size> add(const ProcessGroup& axis, std::array<double, size> hash) {
    std::vector<double> sums = value.numbers();
    const auto num_values = static_cast<std::ptrdiff_t>(sums.size());
    sums.insert(sums.end(), requests.counts.begin(), requests.counts.end());
    sums.insert(sums.end(), hash.begin(), hash.end());
    axis.all_reduce(sums, ReduceOp::sum);
    value.set_numbers(std::span(sums).first(static_cast<std::size_t>(num_values)));
    const auto request_sums = sums.begin() + num_values;
    std::copy_n(request_sums, kNumRequests, requests.counts.begin());
    std::copy_n(request_sums + kNumRequests, size, hash.begin());
    return hash;
  }
};

class PhaseTimer {
 public:
  /// Seconds since the last call, or since this object was made.
  double next() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::optional<LaneSums> lanes_of(const Config& config, const ProcessMesh& mesh) {
  if (!config.run.exact) return std::nullopt;
  return LaneSums::of(static_cast<int>(config.run.exact_lanes), mesh.group(Axis::data));
}

std::unique_ptr<SpotCheck> make_spot_check(const Config& config, Gpt& model,
                                           const ProcessMesh& mesh, Device& device) {
  if (config.run.spot_check_interval == 0) return nullptr;
  return std::make_unique<SpotCheck>(config, model, mesh, device);
}

std::optional<Evaluator> make_evaluator(const Config& config, const RunData& data, Gpt& model,
                                        BatchFeed& feed, ExecutionContext execution) {
  if (!data.validation) return std::nullopt;
  return Evaluator(*data.validation, model, feed, execution,
                   config.train.eval_batches * config.batch.global_batch_size);
}

}  // namespace

RunData::RunData(const Config& config)
    : training(config.data, training_data_options(config)), validation(open_validation(config)) {}

Trainer::Trainer(const Config& config, RunData& data, const ProcessGroup& world, Device& device,
                 const TrainingProgress& progress)
    : config_(config),
      progress_(progress),
      device_(device),
      mesh_(world, config.parallel.mesh(world.size()), device, config.run.collectives),
      num_micro_batches_(config.num_accumulation_steps(world.size())),
      lanes_(lanes_of(config, mesh_)),
      model_(config.model, micro_batch_shape(config.batch), config.run.seed,
             {device, mesh_, dtype_of(config.run.precision), config.num_leaves(),
              config.parallel.recompute, config.parallel.optimizer, config.parallel.sequence},
             progress.step > 0 ? InitialWeights::zero : InitialWeights::drawn,
             lanes_ ? lanes_->num_buffers() : 1),
      replicas_({.world = mesh_.world(),
                 .data = mesh_.group(Axis::data),
                 .tensor = mesh_.group(Axis::tensor)},
                model_.parameters(), held_parts(model_.parameters(), mesh_.group(Axis::tensor)),
                config.run.check_replicas),
      spot_check_(make_spot_check(config, model_, mesh_, device)),
      optimizer_(config.optimizer, device, model_.parameters(), replicas_.parts(),
                 progress.num_updates),
      reducer_(device, mesh_, model_.parameters().buckets(), num_micro_batches_, lanes_),
      gather_(device, mesh_, model_.parameters().gathered_buckets()),
      feed_(device, micro_batch_shape(config.batch)),
      evaluator_(make_evaluator(config, data, model_, feed_, {device, mesh_})),
      prefetcher_(data.training,
                  prefetcher_options(config, mesh_.group(Axis::data), progress.samples_consumed)) {
  model_.read_through(gather_);
}

StepReport Trainer::train_step(const Requests& mine) {
  PhaseTimer timer;
  PhaseSeconds phases;
  const ProcessGroup& data_axis = mesh_.group(Axis::data);
  const std::int64_t batch_size = config_.batch.global_batch_size;
  const auto num_tokens = static_cast<double>(batch_size * config_.batch.sequence_length);
  mesh_.begin_step(++progress_.step);
  if (config_.run.exact) require_denormals();

  const std::vector<BlockObserver*> observers = observers_of_step();
  const Batch batch = prefetcher_.next();
  for (std::int64_t m = 0; m < num_micro_batches_; ++m) {
    if (const auto buffer = reducer_.buffer_begun_by(m)) {
      model_.parameters().zero_gradients(*buffer);
    }
    model_.forward_backward(feed_.training(batch, m), static_cast<float>(1.0 / num_tokens),
                            reducer_, m == 0 ? observers : std::vector<BlockObserver*>());
  }
  reducer_.finish();
  if (config_.run.is_spot_check_due(progress_.step)) spot_check_->finish(batch.samples);
  model_.parameters().add_second_gradients(device_);

  StepSums sums{.value = model_.take_loss_sum(), .requests = mine, .batch_hash = batch.hash};
  sums.add_over_data(data_axis);
  const double loss = sums.value.total() / num_tokens;
  phases.gradients = timer.next();
  sums.value = squares_of_gradients();
  if (!sums.add_over_tensor(mesh_.group(Axis::tensor))) {
    fail_for_unequal_hashes(mesh_, batch.hash, fmt::format("step {}", progress_.step));
  }
  const double norm = std::sqrt(sums.value.total());
  phases.norm = timer.next();
  const double learning_rate =
      config_.optimizer.learning_rate * schedule_factor(config_.schedule, progress_.step);
  // Both numbers are the same bits on every rank, so all ranks decide alike.
  const bool is_finite = std::isfinite(loss) && std::isfinite(norm);
  if (is_finite) update(learning_rate, clip_factor(norm, config_.optimizer.max_gradient_norm));
  const Digest digest = weights_digest();
  phases.update = timer.next();
  progress_.samples_consumed += batch_size;
  progress_.tokens_consumed += batch_size * config_.batch.sequence_length;
  progress_.num_updates = optimizer_.num_updates();
  progress_.num_skipped_in_a_row = is_finite ? 0 : progress_.num_skipped_in_a_row + 1;

  const double seconds = phases.gradients + phases.norm + phases.update + timer.next();
  const double flops =
      num_tokens * training_flops_per_token(config_.model, config_.batch.sequence_length);
  return {.step = progress_.step,
          .loss = loss,
          .gradient_norm = norm,
          .learning_rate = learning_rate,
          .tokens = progress_.tokens_consumed,
          .samples = progress_.samples_consumed,
          .batch_hash = sums.batch_hash,
          .weights_digest = digest,
          .applied = is_finite,
          .seconds = seconds,
          .tokens_per_second = num_tokens / seconds,
          .tflops_per_rank = flops / seconds / mesh_.world().size() * 1e-12,
          .phases = phases,
          .requests = sums.requests};
}

// Of its first micro-batch.
std::vector<BlockObserver*> Trainer::observers_of_step() {
  std::vector<BlockObserver*> observers;
  if (config_.run.is_spot_check_due(progress_.step)) {
    spot_check_->begin(progress_.step);
    observers.push_back(spot_check_.get());
  }
  // After the check has its copies, as if while the block computes.
  if (is_fault_due() && fault_->place == FaultPlace::activation) {
    log_from_rank(mesh_.world(), "flips " + fault_->to_string());
    observers.push_back(&activation_fault_.emplace(*fault_, device_));
  }
  return observers;
}

bool Trainer::is_fault_due() const {
  return fault_ && fault_->step == progress_.step && fault_->rank == mesh_.world().rank();
}

ScalarSum Trainer::squares_of_gradients() {
  ParameterStore& parameters = model_.parameters();
  ScalarSum sum = config_.run.exact
                      ? ScalarSum(exact_sum_of_squares(device_, parameters.owned_squares()))
                      : ScalarSum(sum_of_squares(device_, parameters.owned_gradients()));
  if (parameters.shares().are_apart()) {
    std::vector<double> numbers = sum.numbers();
    mesh_.group(Axis::data).all_reduce(numbers, ReduceOp::sum);
    sum.set_numbers(numbers);
  }
  return sum;
}

void Trainer::update(double learning_rate, double gradient_scale) {
  if (is_fault_due() && fault_->place != FaultPlace::activation) inject_now();
  optimizer_.update(learning_rate, gradient_scale);
  if (model_.parameters().shares().are_apart()) gather_.begin();
  take_digests(optimizer_.digests());
}

void Trainer::take_digests(std::vector<Digest> of_parts) {
  value_digests_ = std::move(of_parts);
  weights_digest_ = replicas_.whole_of_updated(value_digests_,
                                               fmt::format("step {}: the weights", progress_.step));
}

Digest Trainer::weights_digest() {
  if (!weights_digest_) {
    const ParameterStore& store = model_.parameters();
    take_digests(digests_of(replicas_.parts(), store, StatePart::value, store.values(),
                            fetch_from(device_)));
  }
  return *weights_digest_;
}

void Trainer::inject_now() {
  ParameterStore& store = model_.parameters();
  const auto flat = [&]() -> TensorView {
    switch (fault_->place) {
      case FaultPlace::weight:
        return store.values();
      case FaultPlace::exp_avg:
        return optimizer_.exp_avg();
      case FaultPlace::exp_avg_sq:
        return optimizer_.exp_avg_sq();
      case FaultPlace::gradient:
        return store.gradients();
      case FaultPlace::activation:
        break;  // as it comes by
    }
    __builtin_unreachable();
  };
  flip_bit(*fault_, store, flat(), device_);
  log_from_rank(mesh_.world(), "flipped " + fault_->to_string());
}

std::optional<ValidationReport> Trainer::evaluate(const std::function<Requests()>& poll) {
  std::optional<ValidationReport> report;
  if (evaluator_) report = evaluator_->evaluate(progress_.step, poll);
  progress_.is_evaluation_pending = evaluator_ && !report;
  return report;
}

Gpt& Trainer::model() {
  gather_.finish();
  return model_;
}

TrainingTensors Trainer::tensors() {
  gather_.finish();
  return {.values = model_.parameters().values(),
          .exp_avg = optimizer_.exp_avg(),
          .exp_avg_sq = optimizer_.exp_avg_sq(),
          .value_digests = value_digests_};
}

}  // namespace redspine
