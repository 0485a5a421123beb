#include "launch/bench/step.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "launch/bench/rounds.h"
#include "model/embedding.h"
#include "model/flops.h"
#include "model/model_spec.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;

// The first steps choose algorithms and make what libraries keep.
constexpr std::int64_t kNumWarmUpSteps = 2;

double forward_seconds(Trainer& trainer, const Config& config, int world_size, Device& device) {
  const MicroBatchShape shape{.num_sequences = config.batch.micro_batch_size,
                              .sequence_length = config.batch.sequence_length};
  BatchFeed feed(device, shape);
  const std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(shape.num_sequences * shape.sequence_length), 1);
  const MicroBatch batch = feed.windows(tokens, tokens);
  const double seconds =
      seconds_of_rounds(device, 1, [&] { trainer.model().evaluate(batch); }).front();
  trainer.model().take_loss_sum();
  return seconds * static_cast<double>(config.num_accumulation_steps(world_size));
}

void add_steps(StepResult& result, Trainer& trainer, Device& device, std::int64_t num_steps) {
  const auto share = 1.0 / static_cast<double>(num_steps);
  for (std::int64_t step = 0; step < num_steps; ++step) {
    const StepReport report = trainer.train_step();
    // A run does not wait for the update: the host goes on with the next step meanwhile.
    const auto start = Clock::now();
    device.synchronize(Stream::compute);
    const std::chrono::duration<double> rest = Clock::now() - start;
    result.seconds.push_back(report.seconds + rest.count());
    result.phases.gradients += share * report.phases.gradients;
    result.phases.norm += share * report.phases.norm;
    result.phases.update += share * (report.phases.update + rest.count());
    result.loss = report.loss;
  }
  std::sort(result.seconds.begin(), result.seconds.end());
}

}  // namespace

TensorRank tensor_rank_of(const Config& config, const ProcessGroup& world) {
  const MeshShape shape = config.parallel.mesh(world.size());
  return {.num_ranks = shape.size(Axis::tensor),
          .rank = shape.coordinate(world.rank(), Axis::tensor),
          .num_leaves = config.num_leaves()};
}

StepFloor step_floor(const Config& config, const ProcessGroup& world,
                     const std::vector<ProductRate>& products, const StreamRates& streams) {
  const TensorRank rank = tensor_rank_of(config, world);
  const auto num_micro_batches = static_cast<double>(config.num_accumulation_steps(world.size()));
  const auto rows =
      static_cast<double>(config.batch.micro_batch_size * config.batch.sequence_length);
  double products_seconds = 0.0;
  double square_rate = 0.0;
  for (const ProductRate& rate : products) {
    products_seconds += num_micro_batches * rate.product.count * rate.product.flops() / rate.best();
    square_rate = std::max(square_rate, rate.best());
  }
  // Two products forward and five backward, each of half of T x T scores.
  const auto length = static_cast<double>(config.batch.sequence_length);
  const double attention_flops =
      7.0 * rows * (length + 1.0) *
      static_cast<double>(config.model.hidden_size * config.model.num_layers) / rank.num_ranks;
  const auto vocabulary = static_cast<double>(local_vocabulary(config.model, rank).size());
  return {.products = products_seconds,
          .attention = num_micro_batches * attention_flops / square_rate,
          .optimizer =
              28.0 * static_cast<double>(num_local_parameters(config.model, rank)) / streams.best(),
          .logits = num_micro_batches * 4.0 * 4.0 * rows * vocabulary / streams.best()};
}

StepResult measure_steps(const StepBench& bench, const ProcessGroup& world, Device& device) {
  const Config& config = bench.config;
  StepResult result{};
  result.plan = plan_memory(config, world, device.kind());
  PhaseTimes times;
  const TensorRank rank = tensor_rank_of(config, world);
  const auto timed = make_timed_device(device, times, local_vocabulary(config.model, rank).size());
  const bool is_blocking = device.kind() == DeviceKind::cpu;
  Device& used = is_blocking ? *timed : device;
  const std::int64_t used_before = device.used_bytes();
  Trainer trainer(config, bench.data, world, used);
  for (std::int64_t step = 0; step < kNumWarmUpSteps; ++step) trainer.train_step();
  times = {};
  const std::clock_t cpu_start = std::clock();
  add_steps(result, trainer, used, bench.num_steps);
  result.cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC /
                       static_cast<double>(bench.num_steps);
  if (is_blocking) {
    for (double& seconds : times.seconds) seconds /= static_cast<double>(bench.num_steps);
    result.times = times;
  }
  result.used_bytes = device.used_bytes() - used_before;
  const auto num_tokens =
      static_cast<double>(config.batch.global_batch_size * config.batch.sequence_length);
  result.tokens_per_second = num_tokens / result.median_seconds();
  result.model_flops = result.tokens_per_second *
                       training_flops_per_token(config.model, config.batch.sequence_length) /
                       world.size();
  result.forward_seconds = forward_seconds(trainer, config, world.size(), used);
  return result;
}

}  // namespace redspine
