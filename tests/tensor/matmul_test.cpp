#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tensor/ops.h"
#include "tests/support/expect_close.h"
#include "tests/support/random_tensor.h"

namespace redspine {
namespace {

using namespace redspine::testing;

struct Product {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  Transpose transpose_a;
  Transpose transpose_b;
};

// Row i, column j of a stored [rows, cols] matrix or of its transpose.
double element(const Values& stored, Transpose transpose, Shape shape, std::int64_t i,
               std::int64_t j) {
  const bool turned = transpose == Transpose::yes;
  return stored[static_cast<std::size_t>(turned ? j * shape[1] + i : i * shape[1] + j)];
}

void check_product(Device& device, const Product& p, Update update) {
  SCOPED_TRACE("m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " +
               std::to_string(p.k));
  const Shape shape_a = p.transpose_a == Transpose::yes ? Shape{p.k, p.m} : Shape{p.m, p.k};
  const Shape shape_b = p.transpose_b == Transpose::yes ? Shape{p.n, p.k} : Shape{p.k, p.n};
  const auto a = random_values(shape_a.count(), 1);
  const auto b = random_values(shape_b.count(), 2);
  auto before = random_values(p.m * p.n, 3);
  Values expected = widen(before);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        sum += element(widen(a), p.transpose_a, shape_a, i, l) *
               element(widen(b), p.transpose_b, shape_b, l, j);
      }
      double& out = expected[static_cast<std::size_t>(i * p.n + j)];
      out = update == Update::accumulate ? out + sum : sum;
    }
  }
  if (update == Update::write) {  // what is written over must not be read
    std::fill(before.begin(), before.end(), std::numeric_limits<float>::quiet_NaN());
  }
  const Tensor out = to_device(device, before, {p.m, p.n});
  ops::run(device, Matmul{.out = out,
                          .a = to_device(device, a, shape_a),
                          .b = to_device(device, b, shape_b),
                          .transpose_a = p.transpose_a,
                          .transpose_b = p.transpose_b,
                          .update = update});
  expect_close(from_device(device, out), expected, 1e-6);
}

TEST(Matmul, AgreesWithTheDefinitionForEveryTransposeAndUpdate) {
  const auto device = make_cpu_device(2);
  constexpr std::int64_t kSizes[][3] = {
      {1, 1, 1}, {3, 257, 5}, {1, 64, 33}, {17, 1, 96}, {37, 41, 43}};
  for (const auto& [m, n, k] : kSizes) {
    for (Transpose a : {Transpose::no, Transpose::yes}) {
      for (Transpose b : {Transpose::no, Transpose::yes}) {
        for (Update update : {Update::write, Update::accumulate}) {
          check_product(*device, {m, n, k, a, b}, update);
        }
      }
    }
  }
}

TEST(Matmul, OfNoRowsColumnsOrInnerElementsIsEmptyOrZero) {
  const auto device = make_cpu_device(2);
  for (Transpose transpose : {Transpose::no, Transpose::yes}) {
    for (Update update : {Update::write, Update::accumulate}) {
      check_product(*device, {0, 4, 3, transpose, transpose}, update);
      check_product(*device, {4, 0, 3, transpose, transpose}, update);
      check_product(*device, {4, 3, 0, transpose, transpose}, update);
    }
  }
}

TEST(Matmul, SeesATensorOfAnyRankAsTheMatrixOfItsLastDim) {
  const auto device = make_cpu_device(1);
  const Tensor out(*device, DType::f32, {2, 2, 1});
  const Tensor a = to_device<float>(*device, {1, 2, 3, 4}, {2, 2, 1});
  const Tensor b = to_device<float>(*device, {10}, {1, 1});
  ops::run(*device, Matmul{.out = out, .a = a, .b = b});
  EXPECT_EQ(from_device(*device, out), (std::vector<float>{10, 20, 30, 40}));
}

}  // namespace
}  // namespace redspine
