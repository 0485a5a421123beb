#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <string>

#include "tensor/blas_library.h"
#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// Single rows and columns, no multiple of a register, a tile or a block, and more than one of each.
constexpr Sizes kSizes[] = {{1, 1, 1},      {3, 257, 5},    {1, 64, 33},
                            {17, 1, 96},    {37, 41, 43},   {130, 70, 77},
                            {29, 300, 700}, {300, 33, 530}, {5, 1100, 400}};

std::string name_of(const Sizes& s) {
  return "m " + std::to_string(s.m) + " n " + std::to_string(s.n) + " k " + std::to_string(s.k);
}

// out[m, n] = a[m, k] b[k, n] + bias; or b[n, k] where it is to be transposed.
Values product(const Sizes& s, const Values& a, const Values& b, Transpose transpose_b,
               const Values& bias) {
  Values out;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(j)];
      for (std::int64_t l = 0; l < s.k; ++l) {
        const std::int64_t at = transpose_b == Transpose::yes ? j * s.k + l : l * s.n + j;
        sum += a[static_cast<std::size_t>(i * s.k + l)] * b[static_cast<std::size_t>(at)];
      }
      out.push_back(sum);
    }
  }
  return out;
}

Shape shape_of_b(const Sizes& s, Transpose transpose_b) {
  return transpose_b == Transpose::yes ? Shape{s.n, s.k} : Shape{s.k, s.n};
}

// What is written over must not be read.
Tensor unread(Device& device, Shape shape) {
  return to_device(device, std::vector<float>(static_cast<std::size_t>(shape.count()), kNan),
                   shape);
}

enum class WithBias { no, yes };

void expect_product(Device& device, const Sizes& s, Transpose transpose_b, WithBias with_bias) {
  SCOPED_TRACE(name_of(s));
  const auto a = random_values(s.m * s.k, 1);
  const auto b = random_values(s.k * s.n, 2);
  const auto bias = random_values(with_bias == WithBias::yes ? s.n : 0, 3);
  Tensor out = unread(device, {s.m, s.n});
  ops::run(device, Matmul{.out = out,
                          .a = to_device(device, a, {s.m, s.k}),
                          .b = to_device(device, b, shape_of_b(s, transpose_b)),
                          .transpose_b = transpose_b,
                          .bias = to_device(device, bias, {std::ssize(bias)})});
  expect_close(from_device(device, out), product(s, widen(a), widen(b), transpose_b, widen(bias)),
               1e-6);
}

TEST(Matmul, AgreesWithTheDefinition) {
  const auto device = make_cpu_device(2);
  for (const Sizes& sizes : kSizes) {
    for (const Transpose transpose_b : {Transpose::no, Transpose::yes}) {
      for (const WithBias bias : {WithBias::no, WithBias::yes}) {
        expect_product(*device, sizes, transpose_b, bias);
      }
    }
  }
}

TEST(Matmul, OfNoRowsColumnsOrInnerElementsIsEmptyOrTheBias) {
  const auto device = make_cpu_device(2);
  for (const Transpose transpose_b : {Transpose::no, Transpose::yes}) {
    for (const WithBias bias : {WithBias::no, WithBias::yes}) {
      expect_product(*device, {0, 4, 3}, transpose_b, bias);
      expect_product(*device, {4, 0, 3}, transpose_b, bias);
      expect_product(*device, {4, 3, 0}, transpose_b, bias);
    }
  }
}

// dweight[n, k] = or += dy[m, n]^T x[m, k]; dbias[n] += column sums of dy.
void expect_weight_gradient(Device& device, const Sizes& s, WithBias with_bias, Update update) {
  SCOPED_TRACE(name_of(s));
  const auto dy = random_values(s.m * s.n, 1);
  const auto x = random_values(s.m * s.k, 2);
  const auto dweight_before = random_values(s.n * s.k, 3);
  const auto dbias_before = random_values(with_bias == WithBias::yes ? s.n : 0, 4);
  Values dweight =
      update == Update::write ? Values(dweight_before.size(), 0.0) : widen(dweight_before);
  Values dbias = widen(dbias_before);
  for (std::int64_t r = 0; r < s.m; ++r) {
    for (std::int64_t c = 0; c < s.n; ++c) {
      const auto d = static_cast<double>(dy[static_cast<std::size_t>(r * s.n + c)]);
      if (!dbias.empty()) dbias[static_cast<std::size_t>(c)] += d;
      for (std::int64_t i = 0; i < s.k; ++i) {
        dweight[static_cast<std::size_t>(c * s.k + i)] +=
            d * static_cast<double>(x[static_cast<std::size_t>(r * s.k + i)]);
      }
    }
  }
  Tensor dweight_out = to_device(device, dweight_before, {s.n, s.k});
  Tensor dbias_out = to_device(device, dbias_before, {std::ssize(dbias_before)});
  ops::run(device, WeightGradient{.dweight = dweight_out,
                                  .dbias = dbias_out,
                                  .dy = to_device(device, dy, {s.m, s.n}),
                                  .x = to_device(device, x, {s.m, s.k}),
                                  .update = update});
  expect_close(from_device(device, dweight_out), dweight, 1e-6);
  expect_close(from_device(device, dbias_out), dbias, 1e-6);
}

TEST(WeightGradient, WritesOrAddsTheDefinition) {
  const auto device = make_cpu_device(2);
  for (const Update update : {Update::write, Update::accumulate}) {
    for (const Sizes& sizes : kSizes) {
      expect_weight_gradient(*device, sizes, WithBias::no, update);
      expect_weight_gradient(*device, sizes, WithBias::yes, update);
    }
  }
}

TEST(WeightGradient, OfNoRowsIsNothing) {
  const auto device = make_cpu_device(2);
  for (const Update update : {Update::write, Update::accumulate}) {
    expect_weight_gradient(*device, {0, 4, 3}, WithBias::yes, update);
    expect_weight_gradient(*device, {3, 0, 4}, WithBias::yes, update);
    expect_weight_gradient(*device, {3, 4, 0}, WithBias::yes, update);
  }
}

TEST(BlasLibrary, GivesTheSameProducts) {
  const auto device = make_cpu_device(1);
  const Shape square{70, 70};
  Tensor a = to_device(*device, random_values(square.count(), 1), square);
  const Tensor b = to_device(*device, random_values(square.count(), 2), square);
  const auto expect_equal = [&](auto op, TensorView out) {
    device->zero(out);
    ops::run(*device, op);
    const Values ours = widen(from_device(*device, out));
    device->zero(out);
    run_by_blas_library(op);
    expect_close(from_device(*device, out), ours, 1e-6);
  };
  Tensor out(*device, DType::f32, square);
  expect_equal(Matmul{.out = out, .a = a, .b = b}, out);
  expect_equal(Matmul{.out = out, .a = a, .b = b, .transpose_b = Transpose::yes}, out);
  expect_equal(WeightGradient{.dweight = out, .dbias = {}, .dy = a, .x = b}, out);
}

TEST(Matmul, SeesATensorOfAnyRankAsTheMatrixOfItsLastDim) {
  const auto device = make_cpu_device(1);
  Tensor out(*device, DType::f32, {2, 2, 1});
  Tensor a = to_device<float>(*device, {1, 2, 3, 4}, {2, 2, 1});
  const Tensor b = to_device<float>(*device, {10}, {1, 1});
  ops::run(*device, Matmul{.out = out, .a = a, .b = b});
  EXPECT_EQ(from_device(*device, out), (std::vector<float>{10, 20, 30, 40}));
}

}  // namespace
}  // namespace redspine
