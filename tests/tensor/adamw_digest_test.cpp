// The digests that AdamW gives, on any device: of the parameters as it leaves them.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tensor/ops.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/any_device.h"

namespace redspine {
namespace {

using namespace redspine::testing;

// A step on random values.
struct Step {
  Step(Device& device, std::int64_t count)
      : parameter(to_device(device, random_values(count, 1), {count})),
        exp_avg(to_device(device, random_values(count, 2), {count})),
        exp_avg_sq(device, DType::f32, {count}),
        gradient(to_device(device, random_values(count, 3), {count})) {}

  void run(const Device& device, std::span<const AdamWPart> parts, TensorView digests) {
    ops::run(device, AdamW{.parameter = parameter,
                           .exp_avg = exp_avg,
                           .exp_avg_sq = exp_avg_sq,
                           .gradient = gradient,
                           .digests = digests,
                           .parts = parts,
                           .gradient_scale = 0.7,
                           .learning_rate = 1e-2,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .epsilon = 1e-8,
                           .correction1 = 0.1,
                           .correction2 = 0.05});
  }

  Tensor parameter;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor gradient;
};

void expect_digests_of(const std::vector<AdamWPart>& parts, std::int64_t count) {
  const auto device = make_device_under_test();
  const auto num_parts = static_cast<std::int64_t>(parts.size());
  Step plain(*device, count);
  plain.run(*device, parts, {});
  Step step(*device, count);
  Tensor digests =
      to_device(*device, std::vector<std::int64_t>(2 * parts.size(), -1), {num_parts, 2});
  step.run(*device, parts, digests);
  const std::vector<float> values = from_device(*device, step.parameter);
  EXPECT_EQ(values, from_device(*device, plain.parameter));
  EXPECT_EQ(from_device(*device, step.exp_avg), from_device(*device, plain.exp_avg));
  const std::vector<std::int64_t> sums = from_device<std::int64_t>(*device, digests);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto of_part = std::span(values).subspan(static_cast<std::size_t>(parts[i].begin),
                                                   static_cast<std::size_t>(parts[i].count));
    const Digest digest{.low = static_cast<std::uint64_t>(sums[2 * i]),
                        .high = static_cast<std::uint64_t>(sums[2 * i + 1])};
    EXPECT_EQ(digest, digest_of(of_part, parts[i].place)) << "part " << i;
  }
}

TEST(AdamWDigest, IsThatOfTheNewParametersOfEachPart) {
  constexpr std::int64_t kLarge = 40001;  // several blocks of any backend, and no whole one
  const DigestKey key = digest_key("matrix", {100, 40});
  expect_digests_of({{.begin = 3, .count = 1, .weight_decay = 1, .place = {.key = key}},
                     {.begin = 4, .count = 0, .weight_decay = 1, .place = {.key = key}},
                     {.begin = 16,
                      .count = 300,  // some columns of some rows, from within a row
                      .weight_decay = 0,
                      .place = {.key = key, .first = 87, .columns = 12, .row_stride = 40}},
                     {.begin = 320,
                      .count = kLarge,
                      .weight_decay = 0.5,
                      .place = {.key = digest_key("large", {kLarge}), .first = 5}},
                     {.begin = 320 + kLarge,
                      .count = std::int64_t{5} * 4000,
                      .weight_decay = 0.5,
                      .place = {.key = key, .first = 7, .columns = 4000, .row_stride = 9000}}},
                    320 + kLarge + std::int64_t{5} * 4000);
}

TEST(AdamWDigest, OfMorePartsThanOneLaunchTakes) {
  std::vector<AdamWPart> parts;
  for (std::int64_t begin = 0; begin < 3000; begin += 15) {
    parts.push_back({.begin = begin,
                     .count = 15,
                     .weight_decay = 0.1,
                     .place = {.key = digest_key("part", {begin + 1}), .first = begin}});
  }
  expect_digests_of(parts, 3000);
}

}  // namespace
}  // namespace redspine
