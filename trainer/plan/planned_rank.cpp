#include "trainer/plan/planned_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "parallel/mesh/gradient_norm.h"
#include "trainer/digest/held_parts.h"

namespace redspine {
namespace {

ProcessMesh make_mesh(const Config& config, const ProcessGroup& world, RecordingDevice& device) {
  const MeshShape shape = config.parallel.mesh(world.size());
  // MPI's where there are ranks: there is no GPU for NCCL, and neither takes memory of this device.
  if (!world.is_imagined()) return {world, shape, device, CollectiveBackend::mpi};
  return {world, shape, [&device](Axis axis, const ProcessGroup& group) {
            return make_recording_communicator(axis, group, device);
          }};
}

MicroBatchShape micro_batch_shape(const BatchConfig& batch) {
  return {.num_sequences = batch.micro_batch_size, .sequence_length = batch.sequence_length};
}

std::optional<LaneSums> lanes_of(const Config& config, const ProcessMesh& mesh) {
  if (!config.run.exact) return std::nullopt;
  return LaneSums::of(static_cast<int>(config.run.exact_lanes), mesh.group(Axis::data));
}

std::unique_ptr<SpotCheck> make_spot_check(const Config& config, Gpt& model,
                                           const ProcessMesh& mesh, Device& device) {
  if (config.run.spot_check_interval == 0) return nullptr;
  return std::make_unique<SpotCheck>(config, model, mesh, device);
}

// Each micro-batch of exact mode has its own place in the sum.
std::int64_t num_recorded(const Config& config, std::int64_t num_micro_batches) {
  return config.run.exact ? num_micro_batches : std::min<std::int64_t>(num_micro_batches, 3);
}

// In a world that is only thought of, what this rank updates of each parameter, at once: it has
// nobody to ask where others would cut it.
std::vector<HeldPart> parts_of(const ParameterStore& store, const ProcessMesh& mesh,
                               const ProcessGroup& world) {
  if (!world.is_imagined()) return held_parts(store, mesh.group(Axis::tensor));
  std::vector<HeldPart> parts;
  for (std::size_t p = 0; p < store.parameters().size(); ++p) {
    const Parameter& parameter = store.parameters()[p];
    const Range own =
        store.shares().own_part({parameter.offset, parameter.offset + parameter.value.count()});
    if (own.size() == 0) continue;
    parts.push_back({.parameter = p,
                     .range = {},
                     .begin = own.begin,
                     .count = own.size(),
                     .place = {},
                     .moments_begin = store.shares().moment_of(own.begin)});
  }
  return parts;
}

// What the libraries of a GPU are lent (tensor/cuda/scratch.h): for products, or what the
// deterministic backward pass of cuDNN's attention takes on Hopper, of the heads at once.
std::int64_t library_bytes(const Config& config, DeviceKind kind) {
  if (kind != DeviceKind::cuda) return 0;
  constexpr std::int64_t kProducts = std::int64_t{32} << 20;
  if (config.run.precision != Precision::bf16) return kProducts;
  const std::int64_t heads = config.model.num_heads / config.parallel.tensor;
  const std::int64_t length = config.batch.sequence_length;
  return std::max(kProducts, config.batch.micro_batch_size * heads * length * length * 2);
}

}  // namespace

PlannedRank::PlannedRank(const Config& config, const ProcessGroup& world, DeviceKind kind)
    : config_(config),
      num_micro_batches_(config.num_accumulation_steps(world.size())),
      num_recorded_(num_recorded(config, num_micro_batches_)),
      device_(kind),
      mesh_(make_mesh(config, world, device_)),
      lanes_(lanes_of(config, mesh_)),
      model_(config.model, micro_batch_shape(config.batch), config.run.seed,
             {device_, mesh_, dtype_of(config.run.precision), config.num_leaves(),
              config.parallel.recompute, config.parallel.optimizer, config.parallel.sequence},
             InitialWeights::zero, lanes_ ? lanes_->num_buffers() : 1),
      model_bytes_(device_.used_bytes()),
      reducer_(device_, mesh_, model_.parameters().buckets(), num_recorded_, lanes_),
      reducer_bytes_(device_.used_bytes() - model_bytes_),
      gather_(device_, mesh_, model_.parameters().gathered_buckets()),
      feed_(device_, micro_batch_shape(config.batch)),
      bytes_without_check_(device_.used_bytes()),
      spot_check_(make_spot_check(config, model_, mesh_, device_)),
      bytes_without_optimizer_(device_.used_bytes()),
      optimizer_(config.optimizer, device_, model_.parameters(),
                 parts_of(model_.parameters(), mesh_, world)) {
  model_.read_through(gather_);
}

MemoryPlan PlannedRank::memory() {
  ParameterStore& store = model_.parameters();
  // One buffer of gradients may have more than the values do.
  const auto values = static_cast<std::int64_t>(store.values().bytes() + store.working().bytes());
  MemoryPlan plan;
  plan.parameters = values;
  plan.gradients = store.bytes() - values;
  plan.optimizer = device_.used_bytes() - bytes_without_optimizer_;
  plan.saved = static_cast<std::int64_t>(model_.saved_bytes());
  plan.logits = static_cast<std::int64_t>(model_.logits_bytes());
  plan.communication = reducer_bytes_;
  plan.spot_check = bytes_without_optimizer_ - bytes_without_check_;
  plan.scratch =
      bytes_without_check_ - store.bytes() - plan.saved - plan.logits - plan.communication;
  plan.library = library_bytes(config_, device_.kind());
  if (config_.checkpoint.async && config_.checkpoint.interval > 0) {
    plan.snapshot = static_cast<std::int64_t>(
        store.values().bytes() + optimizer_.exp_avg().bytes() + optimizer_.exp_avg_sq().bytes());
  }
  return plan;
}

int PlannedRank::data_rank_with_most_moments() {
  const ParameterShares& shares = model_.parameters().shares();
  std::vector<std::int64_t> moments(static_cast<std::size_t>(mesh_.group(Axis::data).size()));
  if (!shares.are_apart()) return 0;
  for (std::size_t bucket = 0; bucket < shares.num_buckets(); ++bucket) {
    const std::vector<Range>& of_ranks = shares.of_bucket(bucket);
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      moments[rank] += of_ranks[rank].size();
    }
  }
  return static_cast<int>(std::ranges::max_element(moments) - moments.begin());
}

void PlannedRank::run_micro_batch(std::int64_t index) {
  if (const auto buffer = reducer_.buffer_begun_by(index)) {
    model_.parameters().zero_gradients(*buffer);
  }
  const auto [num_sequences, length] = feed_.shape();
  const Batch batch{
      .first_sample = 0,
      .tokens = std::vector<std::int32_t>(static_cast<std::size_t>(num_sequences * (length + 1))),
      .samples = std::vector<std::int64_t>(static_cast<std::size_t>(num_sequences)),
      .hash = 0};
  model_.forward_backward(feed_.training(batch, 0), 1.0F, reducer_);
}

void PlannedRank::run_update() {
  ParameterStore& parameters = model_.parameters();
  model_.take_loss_sum();
  const ScalarSum squares =
      config_.run.exact ? ScalarSum(exact_sum_of_squares(device_, parameters.owned_squares()))
                        : ScalarSum(sum_of_squares(device_, parameters.owned_gradients()));
  optimizer_.update(config_.optimizer.learning_rate,
                    clip_factor(std::sqrt(squares.total()), config_.optimizer.max_gradient_norm));
  optimizer_.digests();
}

StepTraces PlannedRank::record_step() {
  device_.start();
  mesh_.begin_step(1);
  // What the step before has updated is still on its way when a step begins.
  if (model_.parameters().shares().are_apart()) gather_.begin();
  StepTraces traces;
  traces.num_micro_batches = num_micro_batches_;
  for (std::int64_t m = 0; m < num_recorded_; ++m) {
    run_micro_batch(m);
    if (m + 1 == num_recorded_) break;
    StepTrace trace = device_.take_trace();
    // All of exact mode's but the last are one part.
    StepTrace& part = m == 0 || config_.run.exact ? traces.first : traces.middle;
    part.insert(part.end(), trace.begin(), trace.end());
  }
  if (config_.run.exact && num_recorded_ > 1) traces.num_micro_batches = 2;
  reducer_.finish();
  model_.parameters().add_second_gradients(device_);
  traces.last = device_.take_trace();
  run_update();
  traces.update = device_.take_trace();
  return traces;
}

}  // namespace redspine
