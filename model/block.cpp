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

Block::Saved Block::make_saved(std::int64_t batch, std::int64_t length) const {
  const Shape shape{batch, length, hidden_size_};
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.norm1 = norm1_.make_saved(batch * length),
          .normed1_BTD = Tensor(device, dtype, shape),
          .attention = attention_.make_saved(batch, length),
          .mid_BTD = Tensor(device, dtype, shape),
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

void Block::forward_norm1(ConstTensorView x_BTD, Saved& saved) const {
  norm1_.forward(saved.normed1_BTD, x_BTD, saved.norm1);
}

void Block::add_forward_norm1(const Norm::Sum& x, Saved& saved) const {
  norm1_.add_forward(saved.normed1_BTD, x, saved.norm1);
}

Block::Output Block::forward(ConstTensorView x_BTD, Saved& saved, Scratch& scratch,
                             const DropoutSource& dropout) const {
  Device& device = execution_.device;
  attention_.forward(scratch.branch_BTD, saved.normed1_BTD, saved.attention,
                     dropout.at(DropoutSite::attention, layer_));
  drop(device, scratch.branch_BTD, dropout.at(DropoutSite::attention_residual, layer_));

  norm2_.add_forward(
      saved.normed2_BTD,
      {.sum_ND = saved.mid_BTD, .residual_ND = x_BTD, .branch_ND = scratch.branch_BTD},
      saved.norm2);
  mlp_.forward(scratch.branch_BTD, saved.normed2_BTD, saved.mlp);
  drop(device, scratch.branch_BTD, dropout.at(DropoutSite::mlp_residual, layer_));
  return {.residual_BTD = saved.mid_BTD, .branch_BTD = scratch.branch_BTD};
}

void Block::backward(TensorView dresidual_BTD, ConstTensorView x_BTD, const Saved& saved,
                     Scratch& scratch, const DropoutSource& dropout) const {
  Device& device = execution_.device;
  const ConstTensorView dmlp = dropped_gradient(device, scratch.branch_BTD, dresidual_BTD,
                                                dropout.at(DropoutSite::mlp_residual, layer_));
  mlp_.backward({.dx_BTD = scratch.dnormed_BTD, .dout_BTD = dmlp, .x_BTD = saved.normed2_BTD},
                saved.mlp, scratch.mlp);
  norm2_.backward(dresidual_BTD, scratch.dnormed_BTD, saved.mid_BTD, saved.norm2);

  const ConstTensorView dattention =
      dropped_gradient(device, scratch.branch_BTD, dresidual_BTD,
                       dropout.at(DropoutSite::attention_residual, layer_));
  attention_.backward(
      {.dx_BTD = scratch.dnormed_BTD, .dout_BTD = dattention, .x_BTD = saved.normed1_BTD},
      saved.attention, scratch.attention, dropout.at(DropoutSite::attention, layer_));
  norm1_.backward(dresidual_BTD, scratch.dnormed_BTD, x_BTD, saved.norm1);
}

}  // namespace redspine
