// The CUDA backend's kernels that sum over rows or columns, against those of the CPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensor/both_backends.h"

namespace redspine {
namespace {

using namespace redspine::testing;

using Outputs = std::vector<TensorView>;

class CudaReductions : public BothBackends {};

// Sums of some hundred terms in another order.
constexpr Tolerance kSums{.relative_to_largest = 5e-6};

TEST_F(CudaReductions, LayerNormEqualsTheCpus) {
  for (const bool has_bias : {false, true}) {
    expect_agreement_at_any_shape(
        [=](const Device& device, Operands& o, Shape shape) -> Outputs {
          const LayerNorm op{.out = o.written(shape),
                             .mean = o.written_f32({shape[0]}),
                             .rstd = o.written_f32({shape[0]}),
                             .x = o.activation(1, shape),
                             .weight = o.f32(2, {shape[1]}),
                             .bias = has_bias ? o.f32(3, {shape[1]}) : TensorView{},
                             .epsilon = 1e-2F};
          ops::run(device, op);
          return {op.out, op.mean, op.rstd};
        },
        kSums);
  }
}

TEST_F(CudaReductions, LayerNormBackwardEqualsTheCpus) {
  for (const bool has_bias : {false, true}) {
    expect_agreement_at_any_shape(
        [=](const Device& device, Operands& o, Shape shape) -> Outputs {
          const LayerNormBackward op{.dx = o.activation(1, shape),
                                     .dweight = o.f32(2, {shape[1]}),
                                     .dbias = has_bias ? o.f32(3, {shape[1]}) : TensorView{},
                                     .dout = o.activation(4, shape),
                                     .x = o.activation(5, shape),
                                     .mean = o.f32(6, {shape[0]}),
                                     .rstd = o.f32_squares(7, {shape[0]}),
                                     .weight = o.f32(8, {shape[1]})};
          ops::run(device, op);
          Outputs outputs{op.dx, op.dweight};
          if (has_bias) outputs.push_back(op.dbias);
          return outputs;
        },
        kSums);
  }
}

TEST_F(CudaReductions, RmsNormEqualsTheCpus) {
  expect_agreement_at_any_shape(
      [](const Device& device, Operands& o, Shape shape) -> Outputs {
        const RmsNorm op{.out = o.written(shape),
                         .rstd = o.written_f32({shape[0]}),
                         .x = o.activation(1, shape),
                         .weight = o.f32(2, {shape[1]}),
                         .epsilon = 1e-5F};
        ops::run(device, op);
        return {op.out, op.rstd};
      },
      kSums);
}

// The sums of these operands are exact in bf16, so that a branch is added without rounding.
TEST_F(CudaReductions, NormsOfSumsEqualTheCpusAndKeepTheSum) {
  expect_agreement_at_any_shape(
      [](const Device& device, Operands& o, Shape shape) -> Outputs {
        const AddLayerNorm layer{.out = o.written(shape),
                                 .sum = o.written(shape),
                                 .mean = o.written_f32({shape[0]}),
                                 .rstd = o.written_f32({shape[0]}),
                                 .residual = o.small_integers(1, shape),
                                 .branch = o.small_integers(2, shape),
                                 .weight = o.f32(3, {shape[1]}),
                                 .bias = o.f32(4, {shape[1]}),
                                 .epsilon = 1e-2F};
        ops::run(device, layer);
        const AddRmsNorm rms{.out = o.written(shape),
                             .sum = o.written(shape),
                             .rstd = o.written_f32({shape[0]}),
                             .residual = o.small_integers(5, shape),
                             .branch = o.small_integers(6, shape),
                             .weight = layer.weight,
                             .epsilon = 1e-2F};
        ops::run(device, rms);
        return {layer.sum, layer.out, layer.mean, layer.rstd, rms.sum, rms.out, rms.rstd};
      },
      kSums);
}

TEST_F(CudaReductions, RmsNormBackwardEqualsTheCpus) {
  expect_agreement_at_any_shape(
      [](const Device& device, Operands& o, Shape shape) -> Outputs {
        const RmsNormBackward op{.dx = o.activation(1, shape),
                                 .dweight = o.f32(2, {shape[1]}),
                                 .dout = o.activation(3, shape),
                                 .x = o.activation(4, shape),
                                 .rstd = o.f32_squares(5, {shape[0]}),
                                 .weight = o.f32(6, {shape[1]})};
        ops::run(device, op);
        return {op.dx, op.dweight};
      },
      kSums);
}

// Longer than what a block can keep in shared memory, and more rows than blocks.
TEST_F(CudaReductions, NormsOfLongAndOfManyRowsEqualTheCpus) {
  for (const Shape& shape : {Shape{3, 6000}, Shape{2, 5121}, Shape{1200, 8}}) {
    SCOPED_TRACE(shape.to_string());
    expect_agreement(
        [&](const Device& device, Operands& o) -> Outputs {
          const LayerNormBackward op{.dx = o.activation(1, shape),
                                     .dweight = o.f32(2, {shape[1]}),
                                     .dbias = o.f32(3, {shape[1]}),
                                     .dout = o.activation(4, shape),
                                     .x = o.activation(5, shape),
                                     .mean = o.f32(6, {shape[0]}),
                                     .rstd = o.f32_squares(7, {shape[0]}),
                                     .weight = o.f32(8, {shape[1]})};
          ops::run(device, op);
          return {op.dx, op.dweight, op.dbias};
        },
        {.relative_to_largest = 2e-5});
  }
}

TEST_F(CudaReductions, EmbeddingBackwardAddsInTheOrderOfTheTokens) {
  for (const std::int64_t length : {1, 37, 1025}) {
    for (const std::int64_t cols : {1, 33, 136}) {
      for (const bool has_position : {false, true}) {
        SCOPED_TRACE(std::to_string(length) + " tokens, " + std::to_string(cols) + " columns");
        expect_agreement(
            [=](const Device& device, Operands& o) -> Outputs {
              const EmbeddingBackward op{
                  .dweight = o.f32(1, {50, cols}),
                  .dposition = has_position ? o.f32(2, {length + 2, cols}) : TensorView{},
                  .dout = o.activation(3, {2, length, cols}),
                  .tokens = o.ids(4, 2 * length, 0, 90),
                  .first_row = 17};
              ops::run(device, op);
              Outputs outputs{op.dweight};
              if (has_position) outputs.push_back(op.dposition);
              return outputs;
            },
            kSums);
      }
    }
  }
}

// Parts of every size up to `largest`, and empty ones between: more than one launch has room for.
std::vector<ConstTensorView> parts_up_to(std::int64_t largest, Operands& o) {
  std::vector<ConstTensorView> parts;
  for (std::int64_t count = 0; count <= largest; ++count) {
    parts.push_back(o.f32(static_cast<unsigned>(count), {count}));
    parts.emplace_back();
  }
  return parts;
}

TEST_F(CudaReductions, SumOfSquaresEqualsTheCpus) {
  constexpr Tolerance kInF64{.relative_to_largest = 1e-13};
  for (const std::int64_t count : {0, 1, 5, 2048, 100'003}) {
    expect_agreement_in_f32(
        [=](const Device& device, Operands& o) -> Outputs {
          const ConstTensorView x = o.f32(1, {count});
          const SumOfSquares op{.sum = o.f64(2.5), .parts = {&x, 1}};
          ops::run(device, op);
          return {op.sum};
        },
        kInF64);
  }
  expect_agreement_in_f32(
      [](const Device& device, Operands& o) -> Outputs {
        const std::vector<ConstTensorView> parts = parts_up_to(400, o);
        const SumOfSquares op{.sum = o.f64(2.5), .parts = parts};
        ops::run(device, op);
        return {op.sum};
      },
      kInF64);
}

constexpr std::int64_t kRows = 23;

TEST_F(CudaReductions, CrossEntropyEqualsTheCpusOnAnyShardOfTheVocabulary) {
  for (const std::int64_t cols : {1, 8, 31, 257, 2000}) {
    for (const std::int64_t first_column : {0, 100}) {
      SCOPED_TRACE(std::to_string(cols) + " columns from " + std::to_string(first_column));
      expect_agreement(
          [=](const Device& device, Operands& o) -> Outputs {
            const TensorView logits = o.activation(1, {kRows, cols});
            const TensorView targets = o.ids(2, kRows, -1, 300);
            const RowMax max{.max = o.written_f32({kRows}), .logits = logits};
            ops::run(device, max);
            const CrossEntropySums sums{.sums = o.written_f32({2, kRows}),
                                        .logits = logits,
                                        .max = max.max,
                                        .targets = targets,
                                        .first_column = first_column};
            ops::run(device, sums);
            const CrossEntropyLoss loss{.loss = o.f64(1.0), .sums = sums.sums, .targets = targets};
            ops::run(device, loss);
            const CrossEntropyBackward backward{.logits = logits,
                                                .max = max.max,
                                                .sums = sums.sums,
                                                .targets = targets,
                                                .first_column = first_column,
                                                .scale = 0.25F};
            ops::run(device, backward);
            return {max.max, sums.sums, loss.loss, backward.logits};
          },
          kSums);
    }
  }
}

}  // namespace
}  // namespace redspine
