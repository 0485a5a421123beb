#include "model/attention.h"

namespace redspine {
namespace {

HeadLayout head_layout(const ModelConfig& config, TensorRank rank) {
  const HeadPartition heads = local_heads(config, rank);
  return {.num_heads = heads.query_heads.size(),
          .num_kv_heads = heads.kv_heads.size(),
          .head_size = config.head_size(),
          .queries_per_kv = config.num_heads / config.num_kv_heads,
          .first_query = heads.query_heads.begin};
}

Range times(const Range& range, std::int64_t factor) {
  return {range.begin * factor, range.end * factor};
}

std::vector<Range> times(std::vector<Range> ranges, std::int64_t factor) {
  for (Range& range : ranges) range = times(range, factor);
  return ranges;
}

std::vector<OutputFeatures> qkv_features(const ModelConfig& config, TensorRank rank,
                                         const std::string& name) {
  const HeadPartition heads = local_heads(config, rank);
  const std::int64_t head_size = config.head_size();
  const Range query = times(heads.query_heads, head_size);
  OutputFeatures key{.name = name + ".key",
                     .num_global = config.num_kv_heads * head_size,
                     .local = times(heads.kv_heads, head_size),
                     .owned = times(heads.owned_kv_heads, head_size),
                     .leaves = times(kv_head_leaves(config, rank), head_size)};
  // Ranks that read the same key/value head each have the gradient of their own queries only. Exact
  // mode adds these up before the weights' gradient.
  if (shares_kv_heads(config, rank) && !rank.is_exact()) {
    key.local_gradient = LocalGradient::partial;
  }
  OutputFeatures value = key;
  value.name = name + ".value";
  return {{.name = name + ".query",
           .num_global = config.num_heads * head_size,
           .local = query,
           .owned = query,
           .leaves = times(rank.leaves(config.num_heads), head_size)},
          key,
          value};
}

}  // namespace

SelfAttention::Spec SelfAttention::spec(const ModelConfig& config, TensorRank rank,
                                        const std::string& name) {
  const HeadPartition heads = local_heads(config, rank);
  const Bias bias = config.bias ? Bias::yes : Bias::no;
  return {
      .qkv = column_linear("qkv", qkv_features(config, rank, name), config.hidden_size, bias, rank),
      .output = row_linear("attention output",
                           {.name = name + ".output",
                            .out_features = config.hidden_size,
                            .in_features = config.num_heads * config.head_size(),
                            .local_in = times(heads.query_heads, config.head_size()),
                            .initial_std = residual_weight_std(config),
                            .leaves = times(rank.leaves(config.num_heads), config.head_size())},
                           bias, rank)};
}

SelfAttention::SelfAttention(ExecutionContext execution, ParameterStore& store,
                             const ModelConfig& config, const RopeTable* rope,
                             const std::string& name)
    : SelfAttention(execution, store, config, rope, spec(config, execution.tensor_rank(), name)) {}

SelfAttention::SelfAttention(ExecutionContext execution, ParameterStore& store,
                             const ModelConfig& config, const RopeTable* rope, const Spec& spec)
    : execution_(execution),
      heads_(head_layout(config, execution.tensor_rank())),
      sums_(head_sums(config, execution.tensor_rank())),
      rope_(rope),
      qkv_(execution, store, spec.qkv),
      output_(execution, store, spec.output) {}

SelfAttention::Saved SelfAttention::make_saved(std::int64_t batch, std::int64_t length) const {
  Device& device = execution_.device;
  const std::int64_t qkv_size = (heads_.num_heads + 2 * heads_.num_kv_heads) * heads_.head_size;
  const std::int64_t context_size = heads_.num_heads * heads_.head_size;
  const DType dtype = execution_.dtype;
  return {.qkv = Tensor(device, dtype, {batch, length, qkv_size}),
          .context = Tensor(device, dtype, {batch, length, context_size}),
          .log_sum_exp_BhT = Tensor(device, DType::f32, {batch, heads_.num_heads, length})};
}

SelfAttention::Scratch SelfAttention::make_scratch(std::int64_t batch, std::int64_t length) const {
  Saved like = make_saved(batch, length);
  Scratch scratch{.dqkv = std::move(like.qkv),
                  .dcontext = std::move(like.context),
                  .dkv_sums = {},
                  .dkv_2BTK = {}};
  if (sums_ && sums_->is_shared()) {
    Device& device = execution_.device;
    const std::int64_t count = 2 * batch * length * heads_.head_size;
    scratch.dkv_sums = Tensor(device, DType::f32, {sums_->num_own() * count});
    scratch.dkv_2BTK = Tensor(device, DType::f32, {count});
  }
  return scratch;
}

void SelfAttention::rotate(TensorView qkv, RopeDirection direction) const {
  if (rope_ == nullptr) return;
  ops::run(execution_.device, Rope{.x = qkv,
                                   .cos = rope_->cos,
                                   .sin = rope_->sin,
                                   .num_rotated_heads = heads_.num_heads + heads_.num_kv_heads,
                                   .direction = direction});
}

// Every rank takes part in the sum of every head, those that read it and those that do not.
void SelfAttention::add_shared_heads(Scratch& scratch) const {
  if (!sums_ || !sums_->is_shared()) return;
  const TensorView dqkv = scratch.dqkv;
  const Shape rows{dqkv.rows(), heads_.head_size};
  const TensorView sum = scratch.dkv_2BTK;
  std::int64_t first_own = 0;
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(sums_->over_ranks.size()); ++head) {
    const SumOrder& order = sums_->over_ranks[static_cast<std::size_t>(head)];
    std::vector<ConstTensorView> own;
    const auto rank = static_cast<std::size_t>(execution_.tensor_axis().rank());
    for (int s = 0; s < order.num_summands[rank]; ++s, ++first_own) {
      own.push_back(scratch.dkv_sums.view().slice(first_own * sum.count(), sum.count()));
    }
    reduce_in_order(execution_.device, execution_.mesh, sum, std::move(own), order, {}, [] {});
    const std::int64_t local = head - sums_->first_kv_head;
    if (local < 0 || local >= heads_.num_kv_heads) continue;
    for (const std::int64_t part : {0, 1}) {
      const std::int64_t place = heads_.num_heads + part * heads_.num_kv_heads + local;
      ops::run(execution_.device,
               CopyColumns{.out = dqkv,
                           .x = sum.slice(part * rows.count(), rows.count()).reshape(rows),
                           .first = place * heads_.head_size});
    }
  }
}

void SelfAttention::forward_to_context(ConstTensorView x_BTD, Saved& saved,
                                       const DropoutKey& dropout) const {
  qkv_.forward(saved.qkv, x_BTD);
  rotate(saved.qkv, RopeDirection::forward);
  ops::run(execution_.device, Attention{.context = saved.context,
                                        .log_sum_exp_BhT = saved.log_sum_exp_BhT,
                                        .qkv = saved.qkv,
                                        .heads = heads_,
                                        .dropout = dropout});
}

void SelfAttention::forward(TensorView out_BTD, ConstTensorView x_BTD, Saved& saved,
                            const DropoutKey& dropout) const {
  forward_to_context(x_BTD, saved, dropout);
  output_.forward(out_BTD, saved.context);
}

void SelfAttention::backward(const Backward& gradients, const Saved& saved, Scratch& scratch,
                             const DropoutKey& dropout) const {
  output_.backward(scratch.dcontext, gradients.dout_BTD, saved.context);
  ops::run(execution_.device, AttentionBackward{.dqkv = scratch.dqkv,
                                                .dcontext = scratch.dcontext,
                                                .qkv = saved.qkv,
                                                .context = saved.context,
                                                .log_sum_exp_BhT = saved.log_sum_exp_BhT,
                                                .heads = heads_,
                                                .dropout = dropout,
                                                .order = sums_ ? &sums_->own : nullptr,
                                                .dkv_sums = scratch.dkv_sums});
  add_shared_heads(scratch);
  rotate(scratch.dqkv, RopeDirection::backward);
  qkv_.backward(gradients.dx_BTD, scratch.dqkv, gradients.x_BTD);
}

}  // namespace redspine
