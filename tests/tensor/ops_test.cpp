#include "tensor/ops.h"

#include <gtest/gtest.h>

#include <string>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

// Views of nothing: checks look at shapes and dtypes only.
TensorView f32(Shape shape) { return {nullptr, DType::f32, shape}; }
TensorView bf16(Shape shape) { return {nullptr, DType::bf16, shape}; }
TensorView f64(Shape shape) { return {nullptr, DType::f64, shape}; }
TensorView i32(Shape shape) { return {nullptr, DType::i32, shape}; }
TensorView i64(Shape shape) { return {nullptr, DType::i64, shape}; }

template <class Op>
std::string error_of(const Op& op) {
  try {
    ops::check(op);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

template <class Op>
void expect_error(const Op& op, const std::string& text) {
  EXPECT_EQ(error_of(op).substr(0, text.size()), text);
}

TEST(OpsCheck, MatmulNamesItsOperandsAndTheirShapes) {
  expect_error(Matmul{.out = f32({4, 2}), .a = f32({4, 3}), .b = f32({5, 2})},
               "Matmul: a [4, 3] x b [5, 2] does not give out [4, 2]");
  expect_error(
      Matmul{.out = f32({4, 5}), .a = f32({4, 3}), .b = f32({3, 5}), .transpose_b = Transpose::yes},
      "Matmul: a [4, 3] x b [3, 5] transposed does not give out [4, 5]");
  expect_error(Matmul{.out = f64({4, 2}), .a = f32({4, 3}), .b = f32({3, 2})},
               "Matmul: out [4, 2] is f64, it must be f32");
  expect_error(Matmul{.out = f32({2, 2, 2}), .a = f32({2, 2, 3}), .b = f32({3, 2})}, "none");
}

TEST(OpsCheck, ActivationsShareOneTypeOfTheTwoThatAreComputedWith) {
  expect_error(Matmul{.out = bf16({4, 2}), .a = bf16({4, 3}), .b = bf16({3, 2})}, "none");
  expect_error(Matmul{.out = f32({4, 2}), .a = bf16({4, 3}), .b = bf16({3, 2})}, "none");
  expect_error(Matmul{.out = bf16({4, 2}), .a = f32({4, 3}), .b = f32({3, 2})},
               "Matmul: out [4, 2] is bf16, a [4, 3] is f32; they must have one type");
  expect_error(Matmul{.out = f32({4, 2}), .a = bf16({4, 3}), .b = f32({3, 2})},
               "Matmul: b [3, 2] is f32, a [4, 3] is bf16; they must have one type");
  expect_error(Swiglu{.out = bf16({4, 3}), .gate_up = f32({4, 6})},
               "Swiglu: gate_up [4, 6] is f32, out [4, 3] is bf16; they must have one type");
}

TEST(OpsCheck, WhatIsSummedOrKeptIsF32WhereActivationsAreBf16) {
  WeightGradient gradient{
      .dweight = f32({2, 3}), .dbias = f32({2}), .dy = bf16({4, 2}), .x = bf16({4, 3})};
  expect_error(gradient, "none");
  gradient.dbias = bf16({2});
  expect_error(gradient, "WeightGradient: dbias [2] is bf16, it must be f32");
  gradient.dweight = bf16({2, 3});
  expect_error(gradient, "WeightGradient: dweight [2, 3] is bf16, it must be f32");

  RmsNorm norm{.out = bf16({4, 3}),
               .rstd = f32({4}),
               .x = bf16({4, 3}),
               .weight = f32({3}),
               .epsilon = 1e-5F};
  expect_error(norm, "none");
  norm.weight = bf16({3});
  expect_error(norm, "RmsNorm: weight [3] is bf16, it must be f32");
  expect_error(RowMax{.max = f32({4}), .logits = bf16({4, 3})}, "none");
  const ConstTensorView part = bf16({4});
  expect_error(SumOfSquares{.sum = f64({1}), .parts = {&part, 1}},
               "SumOfSquares: part [4] is bf16, it must be f32");
}

TEST(OpsCheck, BiasMustHaveAValueAColumn) {
  expect_error(Matmul{.out = f32({4, 2}), .a = f32({4, 3}), .b = f32({3, 2}), .bias = f32({4})},
               "Matmul: bias [4] must hold 2 elements");
  expect_error(MatmulGelu{.out = f32({4, 2}),
                          .x = f32({4, 2}),
                          .a = f32({4, 3}),
                          .b = f32({2, 3}),
                          .bias = f32({4}),
                          .kind = GeluKind::tanh},
               "MatmulGelu: bias [4] must hold 2 elements");
  expect_error(
      WeightGradient{
          .dweight = f32({2, 3}), .dbias = f32({3}), .dy = f32({4, 2}), .x = f32({4, 3})},
      "WeightGradient: dbias [3] must hold 2 elements");
}

TEST(OpsCheck, FusedProductsNeedTheShapesOfTheirParts) {
  MatmulGelu gelu{.out = f32({4, 2}),
                  .x = f32({4, 2}),
                  .a = f32({4, 3}),
                  .b = f32({2, 3}),
                  .bias = {},
                  .kind = GeluKind::tanh};
  expect_error(gelu, "none");
  gelu.x = f32({2, 4});
  expect_error(gelu, "MatmulGelu: x [2, 4] and out [4, 2] differ");
  gelu.b = f32({3, 2});
  expect_error(gelu, "MatmulGelu: a [4, 3] x b [3, 2] transposed does not give out [4, 2]");
  MatmulGeluBackward backward{.dx = f32({4, 2}),
                              .a = f32({4, 3}),
                              .b = f32({3, 2}),
                              .x = f32({4, 2}),
                              .kind = GeluKind::tanh};
  expect_error(backward, "none");
  backward.x = f32({8});
  expect_error(backward, "MatmulGeluBackward: x [8] and dx [4, 2] differ");
  WeightGradient weight{.dweight = f32({2, 3}), .dbias = {}, .dy = f32({4, 2}), .x = f32({4, 3})};
  expect_error(weight, "none");
  weight.x = f32({5, 3});
  expect_error(weight, "WeightGradient: dy [4, 2] and x [5, 3] differ in their rows");
  weight.x = f32({4, 1});
  expect_error(weight, "WeightGradient: dweight [2, 3] must be 2 rows of 1");
}

TEST(OpsCheck, NormsNeedStatisticsARowAndGainsAColumn) {
  LayerNorm norm{.out = f32({4, 3}),
                 .mean = f32({4}),
                 .rstd = f32({4}),
                 .x = f32({4, 3}),
                 .weight = f32({3}),
                 .bias = {},
                 .epsilon = 1e-5F};
  expect_error(norm, "none");
  norm.bias = f32({4});
  expect_error(norm, "LayerNorm: bias [4] must hold 3 elements");
  norm.out = f32({3, 4});
  expect_error(norm, "LayerNorm: out [3, 4] and x [4, 3] differ");

  AddLayerNorm sum{.out = f32({4, 3}),
                   .sum = f32({4, 3}),
                   .mean = f32({4}),
                   .rstd = f32({4}),
                   .residual = f32({4, 3}),
                   .branch = f32({4, 3}),
                   .weight = f32({3}),
                   .bias = {},
                   .epsilon = 1e-5F};
  expect_error(sum, "none");
  sum.sum = f32({12});
  expect_error(sum, "AddLayerNorm: sum [12] and residual [4, 3] differ");
  sum.branch = f32({3, 4});
  expect_error(sum, "AddLayerNorm: branch [3, 4] and residual [4, 3] differ");
  expect_error(AddRmsNorm{.out = f32({4, 3}),
                          .sum = f32({4, 3}),
                          .rstd = f32({4}),
                          .residual = f32({4, 3}),
                          .branch = {},
                          .weight = f32({3}),
                          .epsilon = 1e-5F},
               "AddRmsNorm: branch [0] and residual [4, 3] differ");

  LayerNormBackward backward{.dx = f32({4, 3}),
                             .dweight = f32({3}),
                             .dbias = {},
                             .dout = f32({4, 3}),
                             .x = f32({4, 3}),
                             .mean = f32({4}),
                             .rstd = f32({4}),
                             .weight = f32({3})};
  expect_error(backward, "none");
  backward.mean = f32({3});
  expect_error(backward, "LayerNormBackward: mean [3] must hold 4 elements");

  expect_error(RmsNorm{.out = f32({4, 3}),
                       .rstd = f32({3}),
                       .x = f32({4, 3}),
                       .weight = f32({3}),
                       .epsilon = 1e-5F},
               "RmsNorm: rstd [3] must hold 4 elements");
  expect_error(RmsNormBackward{.dx = f32({4, 3}),
                               .dweight = f32({1}),
                               .dout = f32({4, 3}),
                               .x = f32({4, 3}),
                               .rstd = f32({4}),
                               .weight = f32({3})},
               "RmsNormBackward: dweight [1] must hold 3 elements");
}

TEST(OpsCheck, RopeNeedsAnglesForItsPositionsAndWholeHeads) {
  Rope rope{.x = f32({2, 8, 12}),
            .cos = f32({8, 2}),
            .sin = f32({8, 2}),
            .num_rotated_heads = 3,
            .direction = RopeDirection::forward};
  expect_error(rope, "none");
  rope.num_rotated_heads = 4;
  expect_error(rope, "Rope: x [2, 8, 12] does not hold 4 heads of size 4");
  rope.cos = rope.sin = f32({7, 2});
  expect_error(rope, "Rope: cos [7, 2] has angles for 7 positions of x [2, 8, 12]");
  rope.cos = rope.sin = f32({8, 5});
  expect_error(rope, "Rope: x [2, 8, 12] does not hold whole heads of size 10");
}

TEST(OpsCheck, DropoutNeedsASampleNumberARow) {
  Dropout dropout{.out = f32({2, 3, 4}), .x = f32({2, 3, 4}), .dropout = {}};
  expect_error(dropout, "none");
  dropout.dropout = {.key = 1, .probability = 0.5F, .samples_B = i64({3})};
  expect_error(dropout, "Dropout: samples [3] must hold 2 elements");
  dropout.dropout.samples_B = i32({2});
  expect_error(dropout, "Dropout: samples [2] is i32, it must be i64");
  dropout.dropout.probability = 1;
  expect_error(dropout, "Dropout: a dropout probability of 1 is outside [0, 1)");
}

TEST(OpsCheck, AttentionNeedsAKeyHeadForEveryQueryHead) {
  const HeadLayout heads{
      .num_heads = 4, .num_kv_heads = 2, .head_size = 8, .queries_per_kv = 2, .first_query = 0};
  Attention attention{.context = f32({2, 5, 32}),
                      .log_sum_exp_BhT = f32({2, 4, 5}),
                      .qkv = f32({2, 5, 64}),
                      .heads = heads,
                      .dropout = {}};
  expect_error(attention, "none");
  attention.heads.first_query = 3;  // then the heads look into three groups
  expect_error(attention,
               "Attention: 4 query heads from number 3 on, 2 per kv head, need 3 kv heads, not 2");
  attention.heads = heads;
  attention.qkv = f32({2, 5, 63});
  expect_error(attention, "Attention: qkv [2, 5, 63] must be 10 rows of 64");

  AttentionBackward backward{.dqkv = f32({2, 5, 64}),
                             .dcontext = f32({2, 5, 32}),
                             .qkv = f32({2, 5, 64}),
                             .context = f32({2, 5, 32}),
                             .log_sum_exp_BhT = f32({2, 4, 5}),
                             .heads = heads,
                             .dropout = {}};
  expect_error(backward, "none");
  backward.log_sum_exp_BhT = f32({2, 4, 4});
  expect_error(backward, "AttentionBackward: log_sum_exp [2, 4, 4] must hold 40 elements");
}

TEST(OpsCheck, ActivationsKeepTheirShape) {
  expect_error(Swiglu{.out = f32({3, 4}), .gate_up = f32({3, 4})},
               "Swiglu: gate_up [3, 4] must be 3 rows of 8");
  expect_error(SwigluBackward{.dgate_up = f32({3, 4}), .dout = f32({3, 4}), .gate_up = f32({3, 8})},
               "SwigluBackward: dgate_up [3, 4] and gate_up [3, 8] differ");
}

TEST(OpsCheck, EmbeddingsNeedTokensAsIntegersAndAPositionForEach) {
  Embedding embedding{.out = f32({1, 3, 4}),
                      .weight = f32({9, 4}),
                      .position = {},
                      .tokens = i32({3}),
                      .first_row = 0};
  expect_error(embedding, "none");
  embedding.position = f32({2, 4});
  expect_error(embedding,
               "Embedding: position [2, 4] has fewer rows than out [1, 3, 4] has positions");
  embedding.tokens = i64({3});
  expect_error(embedding, "Embedding: tokens [3] is i64, it must be i32");
  expect_error(EmbeddingBackward{.dweight = f32({9, 5}),
                                 .dposition = {},
                                 .dout = f32({1, 3, 4}),
                                 .tokens = i32({3}),
                                 .first_row = 0},
               "EmbeddingBackward: dweight [9, 5] must be 9 rows of 4");
}

TEST(OpsCheck, CrossEntropyNeedsItsRowsEverywhere) {
  expect_error(RowMax{.max = f32({4}), .logits = f32({3, 0})},
               "RowMax: max [4] must hold 3 elements");
  expect_error(CrossEntropySums{.sums = f32({3, 2}),
                                .logits = f32({3, 7}),
                                .max = f32({3}),
                                .targets = i32({3}),
                                .first_column = 0},
               "CrossEntropySums: sums [3, 2] must be 2 rows of 3");
  expect_error(CrossEntropyLoss{.loss = f32({1}), .sums = f32({2, 3}), .targets = i32({3})},
               "CrossEntropyLoss: loss [1] is f32, it must be f64");
  expect_error(CrossEntropyBackward{.logits = f32({3, 7}),
                                    .max = f32({3}),
                                    .sums = f32({2, 3}),
                                    .targets = i32({4}),
                                    .first_column = 0,
                                    .scale = 1},
               "CrossEntropyBackward: targets [4] must hold 3 elements");
}

TEST(OpsCheck, OptimizerStateMatchesItsParameter) {
  expect_error(SumOfSquares{.sum = f64({2}), .parts = {}},
               "SumOfSquares: sum [2] must hold 1 elements");
  AdamW adamw{};
  adamw.parameter = adamw.exp_avg = adamw.exp_avg_sq = f32({3});
  adamw.gradient = f32({4});
  expect_error(adamw, "AdamW: gradient [4] and parameter [3] differ");
  adamw.gradient = f32({3});
  expect_error(adamw, "none");
  const AdamWPart part{.begin = 1, .count = 3, .weight_decay = 0.0};
  adamw.parts = {&part, 1};
  expect_error(adamw, "AdamW: the 3 elements from 1 are not all of parameter [3]");
  AdamWPart other{.begin = 1, .count = 2, .weight_decay = 0.0};
  other.place.columns = 0;
  adamw.parts = {&other, 1};
  expect_error(adamw, "none");
  adamw.digests = i64({1, 2});
  expect_error(adamw, "AdamW: the part from 1 has 0 columns");
  adamw.digests = i64({2, 2});
  expect_error(adamw, "AdamW: digests [2, 2] must hold 2 elements");
}

TEST(OpsRun, TheCpuRejectsBf16) {
  const auto device = make_cpu_device(1);
  Tensor a(*device, DType::bf16, {2, 2});
  Tensor out(*device, DType::bf16, {2, 2});
  try {
    ops::run(*device, Matmul{.out = out, .a = a, .b = a});
    FAIL() << "bf16 was taken";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("in bf16 was given to what computes in f32 on the CPU"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace redspine
