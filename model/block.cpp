#include "model/block.h"

#include <fmt/format.h>

namespace redspine {
namespace {

// What the layers of a block are called in it.
constexpr const char* kNorm1 = "norm1";
constexpr const char* kAttention = "attention";
constexpr const char* kNorm2 = "norm2";
constexpr const char* kMlp = "mlp";

// The gradient of a branch whose output was dropped, then added to the residual stream.
ConstTensorView dropped_gradient(Device& device, TensorView scratch, ConstTensorView dresidual,
                                 const DropoutKey& dropout) {
  if (dropout.probability == 0.0F) return dresidual;
  ops::run(device, Dropout{.out = scratch, .x = dresidual, .dropout = dropout});
  return scratch;
}

}  // namespace

LayerSpec Block::spec(const ModelConfig& config, TensorRank rank) {
  LayerSpec spec;
  const auto add_norm = [&](const Norm::Spec& norm) {
    spec.add(norm.weight);
    spec.add(norm.bias);
  };
  add_norm(Norm::spec(config, rank, kNorm1));
  const SelfAttention::Spec attention = SelfAttention::spec(config, rank, kAttention);
  spec.add(attention.qkv);
  spec.add(attention.output);
  add_norm(Norm::spec(config, rank, kNorm2));
  const Mlp::Spec mlp = Mlp::spec(config, rank, kMlp);
  spec.add(mlp.up);
  spec.add(mlp.down);
  return spec;
}

std::string Block::prefix(std::int64_t layer) { return fmt::format("blocks.{}.", layer); }

Block::Block(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
             const RopeTable* rope, std::int64_t layer)
    : execution_(execution),
      hidden_size_(config.hidden_size),
      layer_(layer),
      norm1_(execution, store, config, prefix(layer) + kNorm1),
      attention_(execution, store, config, rope, prefix(layer) + kAttention),
      norm2_(execution, store, config, prefix(layer) + kNorm2),
      mlp_(execution, store, config, prefix(layer) + kMlp) {}

Block::AttentionSaved Block::make_attention_saved(std::int64_t batch, std::int64_t length) const {
  return {.norm1 = norm1_.make_saved(batch * length),
          .normed1_BTD = Tensor(execution_.device, execution_.dtype, {batch, length, hidden_size_}),
          .attention = attention_.make_saved(batch, length)};
}

Block::MlpSaved Block::make_mlp_saved(std::int64_t batch, std::int64_t length) const {
  const Shape shape{batch, length, hidden_size_};
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.mid_BTD = Tensor(device, dtype, shape),
          .norm2 = norm2_.make_saved(batch * length),
          .normed2_BTD = Tensor(device, dtype, shape),
          .mlp = mlp_.make_saved(batch, length)};
}

Block::Scratch Block::make_scratch(std::int64_t batch, std::int64_t length) const {
  const Shape shape{batch, length, hidden_size_};
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.branch_BTD = Tensor(device, dtype, shape),
          .dnormed_BTD = Tensor(device, dtype, shape),
          .attention = attention_.make_scratch(batch, length),
          .mlp = mlp_.make_scratch(batch, length)};
}

void Block::forward_norm1(ConstTensorView x_BTD, AttentionSaved& saved) const {
  norm1_.forward(saved.normed1_BTD, x_BTD, saved.norm1);
}

void Block::add_forward_norm1(const Norm::Sum& x, AttentionSaved& saved) const {
  norm1_.add_forward(saved.normed1_BTD, x, saved.norm1);
}

void Block::forward_to_norm2(ConstTensorView x_BTD, const Saved& saved, Scratch& scratch,
                             const DropoutSource& dropout) const {
  auto& [first, second] = saved;
  attention_.forward(scratch.branch_BTD, first.normed1_BTD, first.attention,
                     dropout.at(DropoutSite::attention, layer_));
  drop(execution_.device, scratch.branch_BTD, dropout.at(DropoutSite::attention_residual, layer_));
  norm2_.add_forward(
      second.normed2_BTD,
      {.sum_ND = second.mid_BTD, .residual_ND = x_BTD, .branch_ND = scratch.branch_BTD},
      second.norm2);
}

Block::Output Block::forward(ConstTensorView x_BTD, const Saved& saved, Scratch& scratch,
                             const DropoutSource& dropout) const {
  forward_to_norm2(x_BTD, saved, scratch, dropout);
  MlpSaved& second = saved.mlp;
  mlp_.forward(scratch.branch_BTD, second.normed2_BTD, second.mlp);
  drop(execution_.device, scratch.branch_BTD, dropout.at(DropoutSite::mlp_residual, layer_));
  return {.residual_BTD = second.mid_BTD, .branch_BTD = scratch.branch_BTD};
}

void Block::recompute(ConstTensorView x_BTD, const Saved& saved, Scratch& scratch,
                      const DropoutSource& dropout) const {
  forward_norm1(x_BTD, saved.attention);
  forward_to_norm2(x_BTD, saved, scratch, dropout);
  mlp_.forward_to_hidden(saved.mlp.normed2_BTD, saved.mlp.mlp);
}

void Block::recompute_attention(ConstTensorView x_BTD, AttentionSaved& saved,
                                const DropoutSource& dropout) const {
  forward_norm1(x_BTD, saved);
  attention_.forward_to_context(saved.normed1_BTD, saved.attention,
                                dropout.at(DropoutSite::attention, layer_));
}

void Block::backward(TensorView dresidual_BTD, ConstTensorView x_BTD, const Saved& saved,
                     Scratch& scratch, const DropoutSource& dropout) const {
  Device& device = execution_.device;
  const AttentionSaved& first = saved.attention;
  const MlpSaved& second = saved.mlp;
  const ConstTensorView dmlp = dropped_gradient(device, scratch.branch_BTD, dresidual_BTD,
                                                dropout.at(DropoutSite::mlp_residual, layer_));
  mlp_.backward({.dx_BTD = scratch.dnormed_BTD, .dout_BTD = dmlp, .x_BTD = second.normed2_BTD},
                second.mlp, scratch.mlp);
  norm2_.backward(dresidual_BTD, scratch.dnormed_BTD, second.mid_BTD, second.norm2);

  const ConstTensorView dattention =
      dropped_gradient(device, scratch.branch_BTD, dresidual_BTD,
                       dropout.at(DropoutSite::attention_residual, layer_));
  attention_.backward(
      {.dx_BTD = scratch.dnormed_BTD, .dout_BTD = dattention, .x_BTD = first.normed1_BTD},
      first.attention, scratch.attention, dropout.at(DropoutSite::attention, layer_));
  norm1_.backward(dresidual_BTD, scratch.dnormed_BTD, x_BTD, first.norm1);
}

}  // namespace redspine
