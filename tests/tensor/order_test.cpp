// The same bits for any number of threads and any alignment: sums have one fixed order.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tensor/ops.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

// Enough elements for three threads, in no round number of blocks or vectors.
constexpr std::int64_t kRows = 301;
constexpr std::int64_t kCols = 515;
constexpr std::int64_t kCount = kRows * kCols;

// Buffers that start `offset` elements into their allocation, so that no vector is aligned.
class OffsetBuffers {
 public:
  OffsetBuffers(Device& device, std::int64_t offset) : device_(device), offset_(offset) {}

  TensorView random(unsigned seed, Shape shape) {
    return upload(random_values(shape.count(), seed), shape);
  }
  TensorView random_squares(unsigned seed, Shape shape) {
    auto values = random_values(shape.count(), seed);
    for (float& value : values) value *= value;
    return upload(values, shape);
  }
  TensorView ids(unsigned seed, std::int32_t last) {
    return tensors_.emplace_back(to_device(device_, random_ids(kRows, seed, 0, last), {kRows}));
  }
  TensorView f64() { return tensors_.emplace_back(device_, DType::f64, Shape{1}); }

 private:
  TensorView upload(const std::vector<float>& values, Shape shape) {
    Tensor& tensor = tensors_.emplace_back(device_, DType::f32, Shape{shape.count() + offset_});
    const TensorView view = tensor.view().slice(offset_, shape.count());
    device_.upload(view, host_view(std::span<const float>(values)));
    return view.reshape(shape);
  }

  Device& device_;
  std::int64_t offset_;
  std::vector<Tensor> tensors_;
};

struct Case {
  std::string name;
  /// Runs the operation and gives its outputs.
  std::function<std::vector<TensorView>(const Device&, OffsetBuffers&)> run;
};

const Shape kMatrix{kRows, kCols};

std::vector<Case> normalisation_cases() {
  return {
      {"LayerNorm",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const LayerNorm op{.out = o.random(1, kMatrix),
                            .mean = o.random(2, {kRows}),
                            .rstd = o.random(3, {kRows}),
                            .x = o.random(4, kMatrix),
                            .weight = o.random(5, {kCols}),
                            .bias = o.random(6, {kCols}),
                            .epsilon = 1e-5F};
         ops::run(device, op);
         return {op.out, op.mean, op.rstd};
       }},
      {"AddLayerNorm",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const AddLayerNorm op{.out = o.random(1, kMatrix),
                               .sum = o.random(8, kMatrix),
                               .mean = o.random(2, {kRows}),
                               .rstd = o.random(3, {kRows}),
                               .residual = o.random(4, kMatrix),
                               .branch = o.random(7, kMatrix),
                               .weight = o.random(5, {kCols}),
                               .bias = o.random(6, {kCols}),
                               .epsilon = 1e-5F};
         ops::run(device, op);
         return {op.out, op.sum, op.mean, op.rstd};
       }},
      {"LayerNormBackward",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const LayerNormBackward op{.dx = o.random(1, kMatrix),
                                    .dweight = o.random(2, {kCols}),
                                    .dbias = o.random(3, {kCols}),
                                    .dout = o.random(4, kMatrix),
                                    .x = o.random(5, kMatrix),
                                    .mean = o.random(6, {kRows}),
                                    .rstd = o.random(7, {kRows}),
                                    .weight = o.random(8, {kCols})};
         ops::run(device, op);
         return {op.dx, op.dweight, op.dbias};
       }},
      {"RmsNorm",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const RmsNorm op{.out = o.random(1, kMatrix),
                          .rstd = o.random(2, {kRows}),
                          .x = o.random(3, kMatrix),
                          .weight = o.random(4, {kCols}),
                          .epsilon = 1e-5F};
         ops::run(device, op);
         return {op.out, op.rstd};
       }},
      {"AddRmsNorm",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const AddRmsNorm op{.out = o.random(1, kMatrix),
                             .sum = o.random(6, kMatrix),
                             .rstd = o.random(2, {kRows}),
                             .residual = o.random(3, kMatrix),
                             .branch = o.random(5, kMatrix),
                             .weight = o.random(4, {kCols}),
                             .epsilon = 1e-5F};
         ops::run(device, op);
         return {op.out, op.sum, op.rstd};
       }},
      {"RmsNormBackward",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const RmsNormBackward op{.dx = o.random(1, kMatrix),
                                  .dweight = o.random(2, {kCols}),
                                  .dout = o.random(3, kMatrix),
                                  .x = o.random(4, kMatrix),
                                  .rstd = o.random(5, {kRows}),
                                  .weight = o.random(6, {kCols})};
         ops::run(device, op);
         return {op.dx, op.dweight};
       }},
  };
}

std::vector<Case> elementwise_cases() {
  return {
      {"Swiglu",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const Swiglu op{.out = o.random(1, kMatrix), .gate_up = o.random(2, {kRows, 2 * kCols})};
         ops::run(device, op);
         return {op.out};
       }},
      {"SwigluBackward",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const SwigluBackward op{.dgate_up = o.random(1, {kRows, 2 * kCols}),
                                 .dout = o.random(2, kMatrix),
                                 .gate_up = o.random(3, {kRows, 2 * kCols})};
         ops::run(device, op);
         return {op.dgate_up};
       }},
      {"AdamW",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const AdamWPart all{.begin = 0, .count = kCount, .weight_decay = 0.1};
         const AdamW op{.parameter = o.random(1, {kCount}),
                        .exp_avg = o.random(2, {kCount}),
                        .exp_avg_sq = o.random_squares(3, {kCount}),
                        .gradient = o.random(4, {kCount}),
                        .parts = {&all, 1},
                        .gradient_scale = 0.7,
                        .learning_rate = 1e-3,
                        .beta1 = 0.9,
                        .beta2 = 0.95,
                        .epsilon = 1e-8,
                        .correction1 = 0.3,
                        .correction2 = 0.2};
         ops::run(device, op);
         return {op.parameter, op.exp_avg, op.exp_avg_sq};
       }},
  };
}

// Inner dims beyond one block, and an output that several threads share.
std::vector<Case> product_cases() {
  constexpr std::int64_t kInner = 1100;
  const auto gelu = [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
    const MatmulGelu op{.out = o.random(1, kMatrix),
                        .x = o.random(2, kMatrix),
                        .a = o.random(3, {kRows, kInner}),
                        .b = o.random(4, {kCols, kInner}),
                        .bias = o.random(5, {kCols}),
                        .kind = GeluKind::tanh};
    ops::run(device, op);
    return {op.out, op.x};
  };
  const auto gelu_backward = [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
    const MatmulGeluBackward op{.dx = o.random(1, kMatrix),
                                .a = o.random(2, {kRows, kInner}),
                                .b = o.random(3, {kInner, kCols}),
                                .x = o.random(4, kMatrix),
                                .kind = GeluKind::exact};
    ops::run(device, op);
    return {op.dx};
  };
  const auto weight_gradient = [](const Device& device,
                                  OffsetBuffers& o) -> std::vector<TensorView> {
    const WeightGradient op{.dweight = o.random(1, kMatrix),
                            .dbias = o.random(2, {kRows}),
                            .dy = o.random(3, {kInner, kRows}),
                            .x = o.random(4, {kInner, kCols})};
    ops::run(device, op);
    return {op.dweight, op.dbias};
  };
  return {{"MatmulGelu", gelu},
          {"MatmulGeluBackward", gelu_backward},
          {"WeightGradient", weight_gradient}};
}

std::vector<Case> vocabulary_cases() {
  return {
      {"Embedding",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const Embedding op{.out = o.random(1, {7, 43, kCols}),
                            .weight = o.random(2, {40, kCols}),
                            .position = o.random(4, {50, kCols}),
                            .tokens = o.ids(3, 50),
                            .first_row = 5};
         ops::run(device, op);
         return {op.out};
       }},
      {"EmbeddingBackward",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const EmbeddingBackward op{.dweight = o.random(1, {40, kCols}),
                                    .dposition = o.random(4, {50, kCols}),
                                    .dout = o.random(2, {7, 43, kCols}),
                                    .tokens = o.ids(3, 50),
                                    .first_row = 5};
         ops::run(device, op);
         return {op.dweight, op.dposition};
       }},
      {"CrossEntropy",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const TensorView logits = o.random(1, kMatrix);
         const TensorView max = o.random(2, {kRows});
         const TensorView sums = o.random(3, {2, kRows});
         const TensorView targets = o.ids(4, kCols - 1);
         const TensorView loss = o.f64();
         ops::run(device, RowMax{.max = max, .logits = logits});
         ops::run(device, CrossEntropySums{.sums = sums,
                                           .logits = logits,
                                           .max = max,
                                           .targets = targets,
                                           .first_column = 0});
         ops::run(device, CrossEntropyLoss{.loss = loss, .sums = sums, .targets = targets});
         ops::run(device, CrossEntropyBackward{.logits = logits,
                                               .max = max,
                                               .sums = sums,
                                               .targets = targets,
                                               .first_column = 0,
                                               .scale = 0.1F});
         return {max, sums, loss, logits};
       }},
      {"SumOfSquares",
       [](const Device& device, OffsetBuffers& o) -> std::vector<TensorView> {
         const ConstTensorView x = o.random(1, {kCount});
         const SumOfSquares op{.sum = o.f64(), .parts = {&x, 1}};
         ops::run(device, op);
         return {op.sum};
       }},
  };
}

// The outputs as bytes: equal bytes are equal bits, NaN included.
std::string bytes_of(const Case& c, int num_threads, std::int64_t offset) {
  const auto device = make_cpu_device(num_threads);
  OffsetBuffers operands(*device, offset);
  std::string bytes;
  for (const TensorView& output : c.run(*device, operands)) {
    bytes.append(static_cast<const char*>(output.raw()), output.bytes());
  }
  return bytes;
}

class KernelOrder : public ::testing::TestWithParam<Case> {};

TEST_P(KernelOrder, DoesNotDependOnTheNumberOfThreads) {
  const std::string one = bytes_of(GetParam(), 1, 0);
  EXPECT_TRUE(one == bytes_of(GetParam(), 2, 0));
  EXPECT_TRUE(one == bytes_of(GetParam(), 3, 0));
}

TEST_P(KernelOrder, DoesNotDependOnTheAlignment) {
  const std::string aligned = bytes_of(GetParam(), 2, 0);
  for (std::int64_t offset : {1, 3, 8}) EXPECT_TRUE(aligned == bytes_of(GetParam(), 2, offset));
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Normalisation, KernelOrder, ::testing::ValuesIn(normalisation_cases()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Elementwise, KernelOrder, ::testing::ValuesIn(elementwise_cases()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Products, KernelOrder, ::testing::ValuesIn(product_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Vocabulary, KernelOrder, ::testing::ValuesIn(vocabulary_cases()),
                         name_of_case);

}  // namespace
}  // namespace redspine
