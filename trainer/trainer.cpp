#include "trainer/trainer.h"

#include <chrono>
#include <cmath>

#include "model/flops.h"
#include "parallel/gradient_norm.h"
#include "trainer/schedule.h"

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

PrefetcherOptions prefetcher_options(const Config& config, const RankGroup& data_axis) {
  return {.samples_consumed = 0,
          .global_batch_size = config.batch.global_batch_size,
          .data_rank = data_axis.rank(),
          .num_data_ranks = data_axis.size()};
}

std::optional<Evaluator> make_evaluator(const Config& config, const RunData& data, Gpt& model,
                                        BatchFeed& feed, Placement placement) {
  if (!data.validation) return std::nullopt;
  return Evaluator(*data.validation, model, feed, placement,
                   config.train.eval_batches * config.batch.global_batch_size);
}

}  // namespace

RunData::RunData(const Config& config)
    : training(config.data, training_data_options(config)), validation(open_validation(config)) {}

std::string RunData::describe() const {
  return training.describe() + (validation ? validation->describe() : "");
}

Trainer::Trainer(const Config& config, RunData& data, const RankGroup& world, Device& device)
    : config_(config),
      device_(device),
      mesh_(world, static_cast<int>(config.parallel.tensor), device),
      num_micro_batches_(config.num_accumulation_steps(world.size())),
      model_(config.model, micro_batch_shape(config.batch), config.run.seed, {device, mesh_}),
      optimizer_(config.optimizer, device, model_.parameters()),
      reducer_(device, mesh_, model_.parameters().buckets(), num_micro_batches_),
      feed_(device, micro_batch_shape(config.batch)),
      evaluator_(make_evaluator(config, data, model_, feed_, {device, mesh_})),
      prefetcher_(data.training, prefetcher_options(config, mesh_.group(Axis::data))) {}

StepReport Trainer::train_step() {
  const auto start = std::chrono::steady_clock::now();
  const RankGroup& data_axis = mesh_.group(Axis::data);
  const std::int64_t batch_size = config_.batch.global_batch_size;
  const auto num_tokens = static_cast<double>(batch_size * config_.batch.sequence_length);
  ++step_;

  const Batch batch = prefetcher_.next();
  device_.zero(model_.parameters().gradients());
  for (std::int64_t m = 0; m < num_micro_batches_; ++m) {
    model_.accumulate_gradients(feed_.training(batch, m), static_cast<float>(1.0 / num_tokens),
                                reducer_);
  }
  reducer_.finish();

  const double loss = data_axis.all_reduce(model_.take_loss_sum(), ReduceOp::sum) / num_tokens;
  const double norm = global_gradient_norm(device_, model_.parameters().owned_gradients(),
                                           mesh_.group(Axis::tensor));
  const double learning_rate =
      config_.optimizer.learning_rate * schedule_factor(config_.schedule, step_);
  // Both numbers are the same bits on every rank, so all ranks decide alike.
  const bool is_finite = std::isfinite(loss) && std::isfinite(norm);
  if (is_finite) {
    optimizer_.update(learning_rate, clip_factor(norm, config_.optimizer.max_gradient_norm));
  }
  const std::uint64_t batch_hash = data_axis.sum(batch.hash);

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double flops =
      num_tokens * training_flops_per_token(config_.model, config_.batch.sequence_length);
  return {.step = step_,
          .loss = loss,
          .gradient_norm = norm,
          .learning_rate = learning_rate,
          .tokens = step_ * batch_size * config_.batch.sequence_length,
          .samples = step_ * batch_size,
          .batch_hash = batch_hash,
          .applied = is_finite,
          .seconds = seconds.count(),
          .tokens_per_second = num_tokens / seconds.count(),
          .tflops_per_rank = flops / seconds.count() / mesh_.world().size() * 1e-12};
}

std::optional<ValidationReport> Trainer::evaluate() {
  if (!evaluator_) return std::nullopt;
  return evaluator_->evaluate(step_);
}

}  // namespace redspine
