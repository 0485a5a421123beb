#include "model/lm_head.h"

#include <algorithm>

#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

// A chunk goes through the weights and their gradient once each, which many rows have to be worth;
// its logits are all that is ever there of them, and take little of the device's memory.
std::int64_t logits_per_chunk(const Device& device) {
  return std::int64_t{device.kind() == DeviceKind::cpu ? 16 : 64} << 20;
}
constexpr std::int64_t kMinRowsPerChunk = 64;

}  // namespace

std::int64_t head_chunk_rows(const Device& device, std::int64_t vocab_size, std::int64_t num_rows) {
  const std::int64_t most = std::max(kMinRowsPerChunk, logits_per_chunk(device) / vocab_size);
  const std::int64_t num_chunks = std::max<std::int64_t>((num_rows + most - 1) / most, 1);
  return (num_rows + num_chunks - 1) / num_chunks;
}

LayerSpec LmHead::spec(const ModelConfig& config, TensorRank rank) {
  LayerSpec spec;
  if (config.tie_embeddings) {
    spec.products = {
        {.product = "head", .weight = TokenEmbedding::spec(config, rank).weight, .bias = {}}};
  } else {
    spec.add(LinearSpec{
        .product = "head", .weight = {vocabulary_matrix(config, rank, "head.weight")}, .bias = {}});
  }
  return spec;
}

LmHead::LmHead(ExecutionContext execution, ParameterStore& store, const ModelConfig& config,
               const TokenEmbedding& embedding)
    : execution_(execution),
      columns_(local_vocabulary(config, execution.tensor_rank())),
      weight_(config.tie_embeddings
                  ? embedding.weight()
                  : store.declare(spec(config, execution.tensor_rank()).parameters)),
      vocab_size_(config.vocab_size),
      chunk_rows_(0) {}

void LmHead::allocate(std::int64_t num_rows) {
  Device& device = execution_.device;
  chunk_rows_ = head_chunk_rows(device, vocab_size_, num_rows);
  logits_ = Tensor(device, execution_.dtype, {chunk_rows_ * columns_.size()});
  max_ = Tensor(device, DType::f32, {chunk_rows_});
  sums_ = Tensor(device, DType::f32, {2 * chunk_rows_});
  loss_sum_ = Tensor(device, DType::f64, {1});
}

void LmHead::logits(TensorView logits_Nv, ConstTensorView x_ND) const {
  ops::run(execution_.device,
           Matmul{.out = logits_Nv, .a = x_ND, .b = weight_.value, .transpose_b = Transpose::yes});
}

// Cross entropy needs two sums over the vocabulary, so two small reductions over the tensor axis.
LmHead::Chunk LmHead::forward_chunk(ConstTensorView x_CD, ConstTensorView targets_C) const {
  const std::int64_t rows = x_CD.dim(0);
  const std::int64_t cols = columns_.size();
  const Chunk chunk{.logits_Cv = logits_.view().slice(0, rows * cols).reshape({rows, cols}),
                    .max_C = max_.view().slice(0, rows),
                    .sums_2C = sums_.view().slice(0, 2 * rows).reshape({2, rows}),
                    .x_CD = x_CD,
                    .targets_C = targets_C};
  Device& device = execution_.device;
  logits(chunk.logits_Cv, x_CD);
  ops::run(device, RowMax{.max = chunk.max_C, .logits = chunk.logits_Cv});
  all_reduce_in_tensor_region(device, execution_.mesh, chunk.max_C, ReduceOp::max);
  ops::run(device, CrossEntropySums{.sums = chunk.sums_2C,
                                    .logits = chunk.logits_Cv,
                                    .max = chunk.max_C,
                                    .targets = targets_C,
                                    .first_column = columns_.begin});
  all_reduce_in_tensor_region(device, execution_.mesh, chunk.sums_2C, ReduceOp::sum);
  ops::run(device,
           CrossEntropyLoss{.loss = loss_sum_, .sums = chunk.sums_2C, .targets = targets_C});
  return chunk;
}

void LmHead::forward(ConstTensorView x_ND, ConstTensorView targets_N) {
  for (std::int64_t row = 0; row < x_ND.dim(0); row += chunk_rows_) {
    const std::int64_t rows = std::min(chunk_rows_, x_ND.dim(0) - row);
    forward_chunk(x_ND.slice(row, rows), targets_N.slice(row, rows));
  }
}

void LmHead::forward_backward(TensorView dx_ND, ConstTensorView x_ND, ConstTensorView targets_N,
                              float scale) {
  Device& device = execution_.device;
  for (std::int64_t row = 0; row < x_ND.dim(0); row += chunk_rows_) {
    const std::int64_t rows = std::min(chunk_rows_, x_ND.dim(0) - row);
    const Chunk chunk = forward_chunk(x_ND.slice(row, rows), targets_N.slice(row, rows));
    ops::run(device, CrossEntropyBackward{.logits = chunk.logits_Cv,
                                          .max = chunk.max_C,
                                          .sums = chunk.sums_2C,
                                          .targets = chunk.targets_C,
                                          .first_column = columns_.begin,
                                          .scale = scale});
    ops::run(device,
             Matmul{.out = dx_ND.slice(row, rows), .a = chunk.logits_Cv, .b = weight_.value});
    ops::run(device, WeightGradient{.dweight = weight_.gradient,
                                    .dbias = {},
                                    .dy = chunk.logits_Cv,
                                    .x = chunk.x_CD,
                                    .update = weight_.take_update()});
  }
  copy_to_tensor_region_backward(device, execution_.mesh, dx_ND);
}

double LmHead::take_loss_sum() {
  double sum = 0.0;
  execution_.device.download(host_view(std::span<double>(&sum, 1)), loss_sum_);
  execution_.device.zero(loss_sum_);
  return sum;
}

}  // namespace redspine
