#include "model/lm_head.h"

#include <algorithm>
#include <array>

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
      chunk_rows_(0),
      unit_rows_(0) {
  const TensorRank rank = execution.tensor_rank();
  if (rank.is_exact()) {
    leaf_sums_ = leaf_sums(rank, {{rank.leaves(config.vocab_size), columns_}});
  }
}

void LmHead::allocate(std::int64_t num_rows, std::int64_t sample_rows) {
  Device& device = execution_.device;
  unit_rows_ = leaf_sums_ ? sample_rows : num_rows;
  chunk_rows_ = head_chunk_rows(device, vocab_size_, unit_rows_);
  const std::int64_t num_sums = leaf_sums_ ? std::max(leaf_sums_->own.num_sums, 1) : 1;
  logits_ = Tensor(device, execution_.dtype, {chunk_rows_ * columns_.size()});
  max_ = Tensor(device, DType::f32, {chunk_rows_});
  sums_ = Tensor(device, DType::f32, {num_sums * 2 * chunk_rows_});
  loss_sum_ = leaf_sums_ ? Tensor(device, DType::i64, {ExactSum::kNumValues})
                         : Tensor(device, DType::f64, {1});
}

void LmHead::logits(TensorView logits_Nv, ConstTensorView x_ND) const {
  ops::run(execution_.device,
           Matmul{.out = logits_Nv, .a = x_ND, .b = weight_.value, .transpose_b = Transpose::yes});
}

// Cross entropy needs two sums over the vocabulary, so two small reductions over the tensor axis.
LmHead::Chunk LmHead::forward_chunk(ConstTensorView x_CD, ConstTensorView targets_C) {
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
  CrossEntropySums sums{.sums = chunk.sums_2C,
                        .logits = chunk.logits_Cv,
                        .max = chunk.max_C,
                        .targets = targets_C,
                        .first_column = columns_.begin};
  if (leaf_sums_) {
    std::vector<ConstTensorView> summands;
    if (!leaf_sums_->is_empty()) {
      const std::int64_t num_sums = leaf_sums_->own.num_sums;
      sums.order = &leaf_sums_->own;
      sums.sums = sums_.view().slice(0, num_sums * 2 * rows).reshape({num_sums * 2, rows});
      ops::run(device, sums);
      summands = summands_in(leaf_sums_->own, sums.sums, chunk.sums_2C);
    }
    reduce_in_order(device, execution_.mesh, chunk.sums_2C, std::move(summands),
                    leaf_sums_->over_ranks, {}, [] {});
  } else {
    ops::run(device, sums);
    all_reduce_in_tensor_region(device, execution_.mesh, chunk.sums_2C, ReduceOp::sum);
  }
  ops::run(device,
           CrossEntropyLoss{.loss = loss_sum_, .sums = chunk.sums_2C, .targets = targets_C});
  return chunk;
}

std::vector<Range> LmHead::chunks_of(std::int64_t num_rows) const {
  std::vector<Range> chunks;
  for (const Range& unit : pieces(num_rows, unit_rows_)) {
    for (const Range& chunk : pieces(unit.size(), chunk_rows_)) {
      chunks.push_back({unit.begin + chunk.begin, unit.begin + chunk.end});
    }
  }
  return chunks;
}

void LmHead::forward(ConstTensorView x_ND, ConstTensorView targets_N) {
  for (const Range& rows : chunks_of(x_ND.dim(0))) {
    forward_chunk(x_ND.slice(rows.begin, rows.size()), targets_N.slice(rows.begin, rows.size()));
  }
}

void LmHead::forward_backward(TensorView dx_ND, ConstTensorView x_ND, ConstTensorView targets_N,
                              float scale) {
  Device& device = execution_.device;
  for (const Range& rows : chunks_of(x_ND.dim(0))) {
    const Chunk chunk = forward_chunk(x_ND.slice(rows.begin, rows.size()),
                                      targets_N.slice(rows.begin, rows.size()));
    ops::run(device, CrossEntropyBackward{.logits = chunk.logits_Cv,
                                          .max = chunk.max_C,
                                          .sums = chunk.sums_2C,
                                          .targets = chunk.targets_C,
                                          .first_column = columns_.begin,
                                          .scale = scale});
    add_input_gradient(dx_ND, rows, chunk);
    ops::run(device, WeightGradient{.dweight = weight_.gradient,
                                    .dbias = {},
                                    .dy = chunk.logits_Cv,
                                    .x = chunk.x_CD,
                                    .update = weight_.take_update()});
  }
  if (leaf_sums_) return;
  copy_to_tensor_region_backward(device, execution_.mesh, dx_ND, execution_.row_shares(), [] {});
}

void LmHead::add_input_gradient(TensorView dx_ND, const Range& rows, const Chunk& chunk) const {
  const Matmul product{
      .out = dx_ND.slice(rows.begin, rows.size()), .a = chunk.logits_Cv, .b = weight_.value};
  if (leaf_sums_) {
    const std::vector<Range> row_shares = shares_within(rows, execution_.row_shares());
    multiply_and_reduce_in_order(execution_, product, *leaf_sums_, row_shares, [] {});
    return;
  }
  ops::run(execution_.device, product);
}

ScalarSum LmHead::take_loss_sum() {
  ScalarSum sum;
  if (leaf_sums_) {
    std::array<std::int64_t, ExactSum::kNumValues> values{};
    execution_.device.download(host_view(std::span<std::int64_t>(values)), loss_sum_);
    sum = ScalarSum(ExactSum(values));
  } else {
    double value = 0.0;
    execution_.device.download(host_view(std::span<double>(&value, 1)), loss_sum_);
    sum = ScalarSum(value);
  }
  execution_.device.zero(loss_sum_);
  return sum;
}

}  // namespace redspine
