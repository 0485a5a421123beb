#include <gtest/gtest.h>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/shapes.h"

namespace redspine {
namespace {

using namespace redspine::testing;

// The shard holds rows [100, 150) of the vocabulary.
constexpr std::int64_t kVocabulary = 257;
constexpr std::int64_t kFirstRow = 100;
constexpr std::int64_t kShardRows = 50;

bool in_shard(std::int32_t token) { return token >= kFirstRow && token < kFirstRow + kShardRows; }

TEST(Embedding, GivesTheRowsOfItsShardAndZerosForTheOthers) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto tokens = random_ids(rows, 1, 0, 256);
    const auto weight = random_values(kShardRows * cols, 2);
    Tensor out = to_device(*device, random_values(rows * cols, 3), {1, rows, cols});
    ops::run(*device, Embedding{.out = out,
                                .weight = to_device(*device, weight, {kShardRows, cols}),
                                .position = {},
                                .tokens = to_device(*device, tokens, {rows}),
                                .first_row = kFirstRow});
    std::vector<float> expected;
    for (std::int32_t token : tokens) {
      for (std::int64_t c = 0; c < cols; ++c) {
        expected.push_back(
            in_shard(token) ? weight[static_cast<std::size_t>((token - kFirstRow) * cols + c)] : 0);
      }
    }
    EXPECT_EQ(from_device(*device, out), expected);
  }
}

TEST(EmbeddingBackward, AddsToTheRowsOfItsShardAndToNoOther) {
  const auto device = make_cpu_device(2);
  for (const auto& [rows, cols] : kRaggedShapes) {
    const auto tokens = random_ids(rows, 1, 90, 160);  // repeated, and outside on both sides
    const auto dout = random_values(rows * cols, 2);
    const auto before = random_values(kVocabulary * cols, 3);
    Values expected = widen(before);
    for (std::int64_t n = 0; n < rows; ++n) {
      const std::int32_t token = tokens[static_cast<std::size_t>(n)];
      if (!in_shard(token)) continue;
      for (std::int64_t c = 0; c < cols; ++c) {
        expected[static_cast<std::size_t>(token * cols + c)] +=
            static_cast<double>(dout[static_cast<std::size_t>(n * cols + c)]);
      }
    }
    Tensor dweight = to_device(*device, before, {kVocabulary, cols});
    ops::run(*device, EmbeddingBackward{.dweight = dweight.view().slice(kFirstRow, kShardRows),
                                        .dposition = {},
                                        .dout = to_device(*device, dout, {1, rows, cols}),
                                        .tokens = to_device(*device, tokens, {rows}),
                                        .first_row = kFirstRow});
    expect_close(from_device(*device, dweight), expected, 1e-6);
  }
}

TEST(Embedding, AddsThePositionOfEachToken) {
  const auto device = make_cpu_device(2);
  constexpr std::int64_t kBatch = 3, kLength = 40, kCols = 193;
  const auto tokens = random_ids(kBatch * kLength, 1, 90, 160);
  const auto weight = random_values(kShardRows * kCols, 2);
  const auto position = random_values((kLength + 5) * kCols, 3);
  Tensor out(*device, DType::f32, {kBatch, kLength, kCols});
  ops::run(*device, Embedding{.out = out,
                              .weight = to_device(*device, weight, {kShardRows, kCols}),
                              .position = to_device(*device, position, {kLength + 5, kCols}),
                              .tokens = to_device(*device, tokens, {kBatch, kLength}),
                              .first_row = kFirstRow});
  std::vector<float> expected;
  for (std::int64_t n = 0; n < kBatch * kLength; ++n) {
    const std::int32_t token = tokens[static_cast<std::size_t>(n)];
    for (std::int64_t c = 0; c < kCols; ++c) {
      const float row =
          in_shard(token) ? weight[static_cast<std::size_t>((token - kFirstRow) * kCols + c)] : 0;
      expected.push_back(row + position[static_cast<std::size_t>(n % kLength * kCols + c)]);
    }
  }
  EXPECT_EQ(from_device(*device, out), expected);
}

TEST(EmbeddingBackward, AddsEveryTokenToItsPosition) {
  const auto device = make_cpu_device(2);
  constexpr std::int64_t kBatch = 3, kLength = 40, kCols = 193;
  const auto tokens = random_ids(kBatch * kLength, 1, 90, 160);
  const auto dout = random_values(kBatch * kLength * kCols, 2);
  const auto before = random_values((kLength + 5) * kCols, 3);
  Values expected = widen(before);
  for (std::int64_t n = 0; n < kBatch * kLength; ++n) {
    for (std::int64_t c = 0; c < kCols; ++c) {
      expected[static_cast<std::size_t>(n % kLength * kCols + c)] +=
          static_cast<double>(dout[static_cast<std::size_t>(n * kCols + c)]);
    }
  }
  Tensor dweight(*device, DType::f32, {kShardRows, kCols});
  Tensor dposition = to_device(*device, before, {kLength + 5, kCols});
  ops::run(*device, EmbeddingBackward{.dweight = dweight,
                                      .dposition = dposition,
                                      .dout = to_device(*device, dout, {kBatch, kLength, kCols}),
                                      .tokens = to_device(*device, tokens, {kBatch, kLength}),
                                      .first_row = kFirstRow});
  expect_close(from_device(*device, dposition), expected, 1e-6);
}

TEST(Embedding, OfAnEmptyShardIsZero) {
  const auto device = make_cpu_device(1);
  Tensor out = to_device(*device, random_values(6, 1), {1, 2, 3});
  Tensor weight(*device, DType::f32, {0, 3});
  const Tensor tokens = to_device<std::int32_t>(*device, {0, 1}, {2});
  ops::run(
      *device,
      Embedding{.out = out, .weight = weight, .position = {}, .tokens = tokens, .first_row = 1});
  EXPECT_EQ(from_device(*device, out), std::vector<float>(6));
  ops::run(*device,
           EmbeddingBackward{
               .dweight = weight, .dposition = {}, .dout = out, .tokens = tokens, .first_row = 1});
}

}  // namespace
}  // namespace redspine
