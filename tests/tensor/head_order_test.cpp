// The order in which exact mode adds up the gradients of a key/value head, against one group of
// query heads at a time.
#include <gtest/gtest.h>

#include <vector>

#include "tensor/ops.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

using Floats = std::vector<float>;

// Six query heads on two key/value heads, in leaves of one head or two.
TEST(HeadOrder, IsThatOfKeyAndValueGradients) {
  const auto device = make_cpu_device(2);
  constexpr std::int64_t kBatch = 2;
  constexpr std::int64_t kLength = 200;
  constexpr std::int64_t kHeads = 6;
  constexpr std::int64_t kKvHeads = 2;
  constexpr std::int64_t kSize = 8;
  const Shape qkv_shape{kBatch, kLength, (kHeads + 2 * kKvHeads) * kSize};
  const Floats qkv = random_values(qkv_shape.count(), 12);
  const Shape context_shape{kBatch, kLength, kHeads * kSize};
  const Floats dcontext = random_values(context_shape.count(), 13);

  // dK and dV of all heads [B, T, 2 * g * K], of some query heads only: the others' gradient is 0.
  const auto dkv_of = [&](const HeadOrder* order, std::int64_t first, std::int64_t last,
                          Tensor* sums) {
    Floats masked = dcontext;
    for (std::size_t i = 0; i < masked.size(); ++i) {
      const auto head = static_cast<std::int64_t>(i) / kSize % kHeads;
      if (head < first || head >= last) masked[i] = 0.0F;
    }
    const HeadLayout heads{kHeads, kKvHeads, kSize, kHeads / kKvHeads, 0};
    const Tensor qkv_on_device = to_device(*device, qkv, qkv_shape);
    Tensor context(*device, DType::f32, context_shape);
    Tensor log_sum_exp(*device, DType::f32, {kBatch * kHeads * kLength});
    ops::run(*device, Attention{.context = context,
                                .log_sum_exp_BhT = log_sum_exp,
                                .qkv = qkv_on_device,
                                .heads = heads,
                                .dropout = {}});
    Tensor dqkv(*device, DType::f32, qkv_shape);
    ops::run(*device, AttentionBackward{.dqkv = dqkv,
                                        .dcontext = to_device(*device, masked, context_shape),
                                        .qkv = qkv_on_device,
                                        .context = context,
                                        .log_sum_exp_BhT = log_sum_exp,
                                        .heads = heads,
                                        .dropout = {},
                                        .order = order,
                                        .dkv_sums = sums == nullptr ? TensorView() : sums->view()});
    Floats dkv;
    const Floats all = from_device(*device, dqkv);
    for (std::int64_t row = 0; row < kBatch * kLength; ++row) {
      const auto begin = all.begin() + row * qkv_shape[2];
      dkv.insert(dkv.end(), begin + kHeads * kSize, begin + qkv_shape[2]);
    }
    return dkv;
  };
  const auto add = [](Floats left, const Floats& right) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
    return left;
  };
  // Head 0: (q0 + (q1, q2)); head 1: ((q3 + q4) + q5).
  const HeadOrder order{
      .groups = {{{1, 0}, {3, 1}}, {{4, 0}, {5, 1}, {6, 1}}}, .num_sums = {1, 1}, .depth = 2};
  const Floats expected_0 = add(dkv_of(nullptr, 0, 1, nullptr), dkv_of(nullptr, 1, 3, nullptr));
  const Floats expected_1 = add(add(dkv_of(nullptr, 3, 4, nullptr), dkv_of(nullptr, 4, 5, nullptr)),
                                dkv_of(nullptr, 5, 6, nullptr));
  const Floats result = dkv_of(&order, 0, kHeads, nullptr);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto kv_head = static_cast<std::int64_t>(i) / kSize % kKvHeads;
    ASSERT_EQ(result[i], kv_head == 0 ? expected_0[i] : expected_1[i]) << i;
  }

  // The same where sums are left for other ranks to add to: head 0 in two, head 1 in one.
  HeadOrder apart = order;
  apart.groups[0][1].num_merges = 0;
  apart.num_sums = {2, 1};
  constexpr std::int64_t kHalf = kBatch * kLength * kSize;
  Tensor sums(*device, DType::f32, {6 * kHalf});
  dkv_of(&apart, 0, kHeads, &sums);
  const Floats all = from_device(*device, sums);
  for (std::int64_t i = 0; i < 2 * kHalf; ++i) {
    const std::int64_t part = i / kHalf;
    const std::int64_t row = i % kHalf / kSize;
    const auto in_row = static_cast<std::size_t>((row * 2 + part) * kKvHeads * kSize + i % kSize);
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(all[at] + all[at + 2 * kHalf], expected_0[in_row]) << i;
    ASSERT_EQ(all[at + 4 * kHalf], expected_1[in_row + kSize]) << i;
  }
}

}  // namespace
}  // namespace redspine::testing
