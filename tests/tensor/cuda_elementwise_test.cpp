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
    for (const std::int64_t first_position : {0, 1, 6}) {
      SCOPED_TRACE(std::to_string(cols) + " columns from position " +
                   std::to_string(first_position));
      expect_agreement(
          [=](const Device& device, Operands& o) -> Outputs {
            const Dropout op{.out = o.written({3, 13, cols}),
                             .x = o.activation(1, {3, 13, cols}),
                             .dropout = {.key = 0x0123456789ABCDEF,
                                         .probability = 0.3F,
                                         .samples_B = o.samples({7, std::int64_t{5} << 33, 0})},
                             .first_position = first_position};
            ops::run(device, op);
            return {op.out};
          },
          {.relative_to_largest = 0.0, .bf16_ulps = 0.0});
    }
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

/// Stretches of `size` elements that begin every `distance`, decaying the more the later.
std::vector<AdamWPart> stretches(std::int64_t size, std::int64_t distance, std::int64_t count) {
  std::vector<AdamWPart> parts;
  for (std::int64_t begin = 0; begin < count; begin += distance) {
    parts.push_back({.begin = begin,
                     .count = std::min(size, count - begin),
                     .weight_decay = 0.01 * static_cast<double>(begin)});
  }
  return parts;
}

TEST_F(CudaElementwise, AdamWEqualsTheCpusAndRoundsTheWorkingCopy) {
  struct Case {
    std::int64_t count;
    std::int64_t size;  // of a part
  };
  // The last two have more parts than one launch has room for.
  for (const Case& c : {Case{1, 1}, {3, 3}, {4, 4}, {1027, 1027}, {1027, 3}, {8192, 16}}) {
    for (const bool has_working : {false, true}) {
      // Without a working copy, which is not written between parts, every second one is left out.
      const std::vector<AdamWPart> parts =
          stretches(c.size, has_working ? c.size : 2 * c.size, c.count);
      expect_agreement_in_f32([&](const Device& device, Operands& o) -> Outputs {
        const AdamW op{.parameter = o.f32(1, {c.count}),
                       .exp_avg = o.f32(2, {c.count}),
                       .exp_avg_sq = o.f32_squares(3, {c.count}),
                       .gradient = o.f32(4, {c.count}),
                       .working = has_working ? o.written_bf16({c.count}) : TensorView{},
                       .parts = parts,
                       .gradient_scale = 0.7,
                       .learning_rate = 1e-2,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
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
