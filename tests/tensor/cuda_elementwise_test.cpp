// The CUDA backend's element-wise kernels against those of the CPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensor/both_backends.h"

namespace redspine {
namespace {

using namespace redspine::testing;

using Outputs = std::vector<TensorView>;

class CudaElementwise : public BothBackends {};

TEST_F(CudaElementwise, SwigluEqualsTheCpus) {
  expect_agreement_at_any_shape([](const Device& device, Operands& o, Shape shape) -> Outputs {
    const Swiglu op{.out = o.written(shape), .gate_up = o.activation(2, {shape[0], 2 * shape[1]})};
    ops::run(device, op);
    return {op.out};
  });
}

TEST_F(CudaElementwise, SwigluBackwardEqualsTheCpus) {
  expect_agreement_at_any_shape([](const Device& device, Operands& o, Shape shape) -> Outputs {
    const Shape twice{shape[0], 2 * shape[1]};
    const SwigluBackward op{.dgate_up = o.written(twice),
                            .dout = o.activation(1, shape),
                            .gate_up = o.activation(2, twice)};
    ops::run(device, op);
    return {op.dgate_up};
  });
}

TEST_F(CudaElementwise, RopeTurnsAsTheCpuDoesInBothDirections) {
  for (const RopeDirection direction : {RopeDirection::forward, RopeDirection::backward}) {
    for (const std::int64_t half : {1, 3, 4, 8, 33}) {
      SCOPED_TRACE("half of a head: " + std::to_string(half));
      expect_agreement([=](const Device& device, Operands& o) -> Outputs {
        const Rope op{.x = o.activation(1, {2, 19, std::int64_t{10} * half}),
                      .cos = o.f32(2, {23, half}),
                      .sin = o.f32(3, {23, half}),
                      .num_rotated_heads = 3,
                      .direction = direction};
        ops::run(device, op);
        return {op.x};
      });
    }
  }
}

TEST_F(CudaElementwise, DropoutDropsWhatTheCpuDrops) {
  for (const std::int64_t cols : {1, 3, 4, 6, 8, 31, 64}) {
    SCOPED_TRACE(std::to_string(cols) + " columns");
    expect_agreement(
        [=](const Device& device, Operands& o) -> Outputs {
          const Dropout op{.out = o.written({3, 13, cols}),
                           .x = o.activation(1, {3, 13, cols}),
                           .dropout = {.key = 0x0123456789ABCDEF,
                                       .probability = 0.3F,
                                       .samples_B = o.samples({7, std::int64_t{5} << 33, 0})}};
          ops::run(device, op);
          return {op.out};
        },
        {.relative_to_largest = 0.0, .bf16_ulps = 0.0});
  }
}

TEST_F(CudaElementwise, NoDropoutIsACopy) {
  expect_agreement(
      [](const Device& device, Operands& o) -> Outputs {
        const Dropout op{
            .out = o.written({1, 5, 7}), .x = o.activation(1, {1, 5, 7}), .dropout = {}};
        ops::run(device, op);
        return {op.out};
      },
      {.relative_to_largest = 0.0, .bf16_ulps = 0.0});
}

TEST_F(CudaElementwise, EmbeddingLooksUpThisShardsRowsAndZerosElsewhere) {
  for (const std::int64_t cols : {1, 8, 33, 64}) {
    for (const bool has_position : {false, true}) {
      expect_agreement(
          [=](const Device& device, Operands& o) -> Outputs {
            const Embedding op{
                .out = o.written({3, 17, cols}),
                .weight = o.activation(1, {20, cols}),
                .position = has_position ? o.activation(2, {19, cols}) : TensorView{},
                .tokens = o.ids(3, 51, 0, 59),
                .first_row = 17};
            ops::run(device, op);
            return {op.out};
          },
          {.relative_to_largest = 0.0, .bf16_ulps = 0.0});
    }
  }
}

TEST_F(CudaElementwise, AdamWEqualsTheCpusAndRoundsTheWorkingCopy) {
  for (const std::int64_t count : {1, 3, 4, 1027}) {
    for (const bool has_working : {false, true}) {
      expect_agreement_in_f32([=](const Device& device, Operands& o) -> Outputs {
        const AdamW op{.parameter = o.f32(1, {count}),
                       .exp_avg = o.f32(2, {count}),
                       .exp_avg_sq = o.f32_squares(3, {count}),
                       .gradient = o.f32(4, {count}),
                       .working = has_working ? o.written_bf16({count}) : TensorView{},
                       .gradient_scale = 0.7,
                       .learning_rate = 1e-2,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
                       .weight_decay = 0.1,
                       .correction1 = 0.1,
                       .correction2 = 0.05};
        ops::run(device, op);
        Outputs outputs{op.parameter, op.exp_avg, op.exp_avg_sq};
        if (has_working) outputs.push_back(op.working);
        return outputs;
      });
    }
  }
}

}  // namespace
}  // namespace redspine
