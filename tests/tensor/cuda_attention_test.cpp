// The CUDA backend's attention, by cuDNN where it is used and by its own kernels, against the
// CPU's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensor/attention_reference.h"
#include "tests/tensor/both_backends.h"

namespace redspine {
namespace {

using namespace redspine::testing;

using Outputs = std::vector<TensorView>;

class CudaAttention : public BothBackends {
 protected:
  struct Case {
    std::int64_t batch = 2;
    std::int64_t length;
    HeadLayout heads;
    float probability = 0.0F;
  };

  // cuDNN rounds probabilities to bf16 before it multiplies with them; our own kernels do not.
  Tolerance in_bf16(double relative_to_largest) const {
    return {.relative_to_largest = is_cudnn() ? 1e-2 : relative_to_largest};
  }
  // The sums that both take before are f32, of exact products.
  Tolerance of_statistics() const { return {.relative_to_largest = is_cudnn() ? 1e-4 : 5e-6}; }
  bool is_cudnn() const { return cuda().description().find("by cuDNN") != std::string::npos; }

  void expect_forward_and_backward(const Case& c) {
    SCOPED_TRACE("T " + std::to_string(c.length) + ", h " + std::to_string(c.heads.num_heads) +
                 ", g " + std::to_string(c.heads.num_kv_heads) + ", K " +
                 std::to_string(c.heads.head_size) + ", first query " +
                 std::to_string(c.heads.first_query) + ", p " + std::to_string(c.probability));
    const Shape qkv{c.batch, c.length,
                    (c.heads.num_heads + 2 * c.heads.num_kv_heads) * c.heads.head_size};
    const Shape context{c.batch, c.length, c.heads.num_heads * c.heads.head_size};
    const Shape statistics{c.batch, c.heads.num_heads, c.length};
    const std::vector<std::int64_t> samples{(std::int64_t{3} << 33) + 5, 2};
    const auto dropout_of = [&](Operands& o) -> DropoutKey {
      if (c.probability == 0.0F) return {};
      return {.key = 0xFEDCBA9876543210,
              .probability = c.probability,
              .samples_B = o.samples({samples.begin(), samples.begin() + c.batch})};
    };
    const auto forward = [&](const Device& device, Operands& o) {
      const Attention op{.context = o.written(context),
                         .log_sum_exp_BhT = o.written_f32(statistics),
                         .qkv = o.activation(1, qkv),
                         .heads = c.heads,
                         .dropout = dropout_of(o)};
      ops::run(device, op);
      return op;
    };
    const Operation context_of = [&](const Device& device, Operands& o) -> Outputs {
      return {forward(device, o).context};
    };
    const Operation statistics_of = [&](const Device& device, Operands& o) -> Outputs {
      return {forward(device, o).log_sum_exp_BhT};
    };
    expect_agreement_in_f32(context_of, {.relative_to_largest = 5e-6});
    expect_agreement_in_f32(statistics_of, {.relative_to_largest = 5e-6});
    expect_agreement_in_bf16(context_of, in_bf16(5e-6));
    expect_agreement_in_bf16(statistics_of, of_statistics());
    // The statistics of a forward pass in bf16 are those of the rounded values, so they come from
    // the same operands in both; a context that is rounded to bf16 once more is not compared.
    expect_agreement_in_f32(
        [&](const Device& device, Operands& o) -> Outputs {
          const Attention pass = forward(device, o);
          const AttentionBackward op{.dqkv = o.written(qkv),
                                     .dcontext = o.activation(2, context),
                                     .qkv = pass.qkv,
                                     .context = pass.context,
                                     .log_sum_exp_BhT = pass.log_sum_exp_BhT,
                                     .heads = c.heads,
                                     .dropout = pass.dropout};
          ops::run(device, op);
          return {op.dqkv};
        },
        {.relative_to_largest = 1e-5});
  }
};

TEST_F(CudaAttention, EqualsTheCpusAtAnyLength) {
  for (const std::int64_t length : {1, 2, 17, 63, 64, 65, 130}) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_forward_and_backward(
          {.length = length, .heads = plain_heads(2, 16), .probability = probability});
    }
  }
}

TEST_F(CudaAttention, EqualsTheCpusAtAnyHeadSize) {
  for (const std::int64_t head_size : {1, 2, 8, 10, 24, 40, 64, 72, 128, 136, 200}) {
    expect_forward_and_backward({.batch = 1, .length = 70, .heads = plain_heads(1, head_size)});
  }
}

// What ranks see of 6 query heads on 2 key and value heads (the middle rank has queries of both),
// and of 4 query heads on one; and a key head without queries.
TEST_F(CudaAttention, EqualsTheCpusOnEveryRankOfASplit) {
  for (const HeadLayout& heads :
       {HeadLayout{6, 2, 8, 3, 0}, HeadLayout{2, 1, 8, 3, 0}, HeadLayout{2, 2, 8, 3, 2},
        HeadLayout{2, 1, 8, 3, 4}, HeadLayout{1, 1, 8, 4, 1}, HeadLayout{1, 2, 8, 1, 0}}) {
    for (const float probability : {0.0F, 0.2F}) {
      expect_forward_and_backward({.length = 67, .heads = heads, .probability = probability});
    }
  }
}

// Each bf16 operand is exact, so that what is left is the rounding of the output.
TEST_F(CudaAttention, BackwardRoundsOnlyItsOutputInBf16) {
  const HeadLayout heads = plain_heads(2, 24);
  expect_agreement_in_bf16(
      [&](const Device& device, Operands& o) -> Outputs {
        const AttentionBackward op{.dqkv = o.written({1, 67, 144}),
                                   .dcontext = o.activation(1, {1, 67, 48}),
                                   .qkv = o.activation(2, {1, 67, 144}),
                                   .context = o.activation(3, {1, 67, 48}),
                                   .log_sum_exp_BhT = o.f32_squares(4, {1, 2, 67}),
                                   .heads = heads,
                                   .dropout = {}};
        ops::run(device, op);
        return {op.dqkv};
      },
      in_bf16(1e-5));
}

}  // namespace
}  // namespace redspine
