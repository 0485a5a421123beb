#include "model/block.h"

#include <fmt/format.h>

#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

// What the layers of a block are called in it.
constexpr const char* kNorm1 = "norm1";
constexpr const char* kAttention = "attention";
constexpr const char* kNorm2 = "norm2";
constexpr const char* kMlp = "mlp";

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
  const Shape shape = execution_.stream_shape(batch, length, hidden_size_);
  return {.norm1 = norm1_.make_saved(shape.count() / hidden_size_),
          .normed1_nD = Tensor(execution_.device, execution_.dtype, shape),
          .attention = attention_.make_saved(batch, length)};
}

Block::MlpSaved Block::make_mlp_saved(std::int64_t batch, std::int64_t length) const {
  const Shape shape = execution_.stream_shape(batch, length, hidden_size_);
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.mid_nD = Tensor(device, dtype, shape),
          .norm2 = norm2_.make_saved(shape.count() / hidden_size_),
          .normed2_nD = Tensor(device, dtype, shape),
          .mlp = mlp_.make_saved(batch, length)};
}

Block::Scratch Block::make_scratch(std::int64_t batch, std::int64_t length) const {
  const Shape shape{batch, length, hidden_size_};
  Device& device = execution_.device;
  const DType dtype = execution_.dtype;
  return {.branch_BTD = Tensor(device, dtype, shape),
          .normed_BTD = Tensor(device, dtype, shape),
          .attention = attention_.make_scratch(batch, length),
          .mlp = mlp_.make_scratch(batch, length)};
}

void Block::forward_norm1(ConstTensorView x_nD, AttentionSaved& saved) const {
  norm1_.forward(saved.normed1_nD, x_nD, saved.norm1);
}

void Block::add_forward_norm1(const Norm::Sum& x, AttentionSaved& saved) const {
  norm1_.add_forward(saved.normed1_nD, x, saved.norm1);
}

ConstTensorView Block::all_rows(ConstTensorView normed_nD, Scratch& scratch) const {
  if (execution_.rows == nullptr) return normed_nD;
  execution_.device.copy(execution_.own_rows(scratch.normed_BTD), normed_nD);
  gather_to_tensor_region(execution_.device, execution_.mesh, scratch.normed_BTD,
                          execution_.row_shares());
  return scratch.normed_BTD;
}

void Block::forward_to_norm2(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                             const DropoutSource& dropout) const {
  auto& [first, second] = saved;
  attention_.forward(scratch.branch_BTD, all_rows(first.normed1_nD, scratch), first.attention,
                     dropout.at(DropoutSite::attention, layer_));
  const TensorView branch_nD = execution_.own_rows(scratch.branch_BTD);
  drop(execution_, branch_nD, dropout.at(DropoutSite::attention_residual, layer_));
  norm2_.add_forward(second.normed2_nD,
                     {.sum_ND = second.mid_nD, .residual_ND = x_nD, .branch_ND = branch_nD},
                     second.norm2);
}

Block::Output Block::forward(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                             const DropoutSource& dropout) const {
  forward_to_norm2(x_nD, saved, scratch, dropout);
  MlpSaved& second = saved.mlp;
  mlp_.forward(scratch.branch_BTD, all_rows(second.normed2_nD, scratch), second.mlp);
  const TensorView branch_nD = execution_.own_rows(scratch.branch_BTD);
  drop(execution_, branch_nD, dropout.at(DropoutSite::mlp_residual, layer_));
  return {.residual_nD = second.mid_nD, .branch_nD = branch_nD};
}

void Block::recompute(ConstTensorView x_nD, const Saved& saved, Scratch& scratch,
                      const DropoutSource& dropout) const {
  forward_norm1(x_nD, saved.attention);
  forward_to_norm2(x_nD, saved, scratch, dropout);
  mlp_.forward_to_hidden(all_rows(saved.mlp.normed2_nD, scratch), saved.mlp.mlp);
}

void Block::recompute_attention(ConstTensorView x_nD, AttentionSaved& saved, Scratch& scratch,
                                const DropoutSource& dropout) const {
  forward_norm1(x_nD, saved);
  attention_.forward_to_context(all_rows(saved.normed1_nD, scratch), saved.attention,
                                dropout.at(DropoutSite::attention, layer_));
}

// The input's rows come beneath the products that do not read it, and its gradient takes the place
// of the output's, which is read by then.
Block::BranchGradients Block::begin_branch_backward(ConstTensorView dresidual_nD,
                                                    ConstTensorView normed_nD, Scratch& scratch,
                                                    const DropoutKey& dropout) const {
  const TensorView branch_BTD = scratch.branch_BTD;
  const TensorView normed_BTD = scratch.normed_BTD;
  if (execution_.rows == nullptr) {
    if (dropout.probability == 0.0F) return {normed_BTD, dresidual_nD, normed_nD};
    drop(execution_, branch_BTD, dresidual_nD, dropout);
    return {normed_BTD, branch_BTD, normed_nD};
  }
  Device& device = execution_.device;
  const ProcessMesh& mesh = execution_.mesh;
  drop(execution_, execution_.own_rows(branch_BTD), dresidual_nD, dropout);
  gather_to_tensor_region(device, mesh, branch_BTD, execution_.row_shares());
  device.copy(execution_.own_rows(normed_BTD), normed_nD);
  begin_gather(device, mesh, normed_BTD, execution_.row_shares());
  return {branch_BTD, branch_BTD, normed_BTD};
}

void Block::backward(TensorView dresidual_nD, ConstTensorView x_nD, const Saved& saved,
                     Scratch& scratch, const DropoutSource& dropout) const {
  const AttentionSaved& first = saved.attention;
  const MlpSaved& second = saved.mlp;
  const BranchGradients of_mlp = begin_branch_backward(
      dresidual_nD, second.normed2_nD, scratch, dropout.at(DropoutSite::mlp_residual, layer_));
  mlp_.backward({.dx_BTD = of_mlp.dx_BTD, .dout_BTD = of_mlp.dout_BTD, .x_BTD = of_mlp.x_BTD},
                second.mlp, scratch.mlp);
  norm2_.backward(dresidual_nD, execution_.own_rows(of_mlp.dx_BTD), second.mid_nD, second.norm2);

  const BranchGradients of_attention = begin_branch_backward(
      dresidual_nD, first.normed1_nD, scratch, dropout.at(DropoutSite::attention_residual, layer_));
  attention_.backward({.dx_BTD = of_attention.dx_BTD,
                       .dout_BTD = of_attention.dout_BTD,
                       .x_BTD = of_attention.x_BTD},
                      first.attention, scratch.attention,
                      dropout.at(DropoutSite::attention, layer_));
  norm1_.backward(dresidual_nD, execution_.own_rows(of_attention.dx_BTD), x_nD, first.norm1);
}

}  // namespace redspine
