// The CUDA backend's products, and what linear layers do with them, against those of the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/tensor/both_backends.h"
#include "tests/tensor/gelu_reference.h"

namespace redspine {
namespace {

using namespace redspine::testing;

using Outputs = std::vector<TensorView>;

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;

  std::string to_string() const {
    return std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n);
  }
};

// Sizes that the library fuses (rows of whole 16-byte pieces), that it does not, and none at all.
constexpr Sizes kSizes[] = {{1, 1, 1},    {64, 48, 32}, {5, 257, 33}, {37, 3, 130},
                            {131, 64, 7}, {4, 8, 0},    {0, 3, 2}};

constexpr Tolerance kSums{.relative_to_largest = 5e-6};
// The slope of GELU passes through zero, where its terms cancel.
constexpr Tolerance kSlope{.relative_to_largest = 5e-5};
// Where GELU is not part of the product, its argument or result has been rounded to bf16 before.
constexpr Tolerance kRoundedTwice{.relative_to_largest = 4e-3, .bf16_ulps = 1.0};

class CudaMatmul : public BothBackends {
 protected:
  using SizedOperation = std::function<Outputs(const Device&, Operands&, Sizes)>;

  void expect_agreement_at_any_size(const SizedOperation& run, Tolerance in_f32 = kSums,
                                    Tolerance in_bf16 = kSums) {
    for (const Sizes& sizes : kSizes) {
      SCOPED_TRACE(sizes.to_string());
      const auto run_sizes = [&](const Device& device, Operands& o) {
        return run(device, o, sizes);
      };
      expect_agreement_in_f32(run_sizes, in_f32);
      expect_agreement_in_bf16(run_sizes, in_bf16);
    }
  }
};

TEST_F(CudaMatmul, EqualsTheCpusWithAndWithoutTransposeAndBias) {
  for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
    for (const bool has_bias : {false, true}) {
      expect_agreement_at_any_size(
          [=](const Device& device, Operands& o, Sizes size) -> Outputs {
            const Shape b =
                transpose == Transpose::yes ? Shape{size.n, size.k} : Shape{size.k, size.n};
            const Matmul op{.out = o.written({size.m, size.n}),
                            .a = o.activation(1, {size.m, size.k}),
                            .b = o.activation(2, b),
                            .transpose_b = transpose,
                            .bias = has_bias ? o.activation(3, {size.n}) : TensorView{}};
            ops::run(device, op);
            return {op.out};
          },
          kSums, has_bias ? kRoundedTwice : kSums);
    }
  }
}

TEST_F(CudaMatmul, OfBf16MayGoToF32) {
  expect_agreement_at_any_size([](const Device& device, Operands& o, Sizes size) -> Outputs {
    const Matmul op{.out = o.written_f32({size.m, size.n}),
                    .a = o.activation(1, {size.m, size.k}),
                    .b = o.activation(2, {size.k, size.n})};
    ops::run(device, op);
    return {op.out};
  });
}

TEST_F(CudaMatmul, WithGeluEqualsTheCpusInBothKinds) {
  for (const GeluKind kind : kGeluKinds) {
    for (const bool has_bias : {false, true}) {
      expect_agreement_at_any_size(
          [=](const Device& device, Operands& o, Sizes size) -> Outputs {
            const MatmulGelu op{.out = o.written({size.m, size.n}),
                                .x = o.written({size.m, size.n}),
                                .a = o.activation(1, {size.m, size.k}),
                                .b = o.activation(2, {size.n, size.k}),
                                .bias = has_bias ? o.activation(3, {size.n}) : TensorView{},
                                .kind = kind};
            ops::run(device, op);
            return {op.out, op.x};
          },
          kSums, kRoundedTwice);
    }
  }
}

TEST_F(CudaMatmul, BackThroughGeluEqualsTheCpusInBothKinds) {
  for (const GeluKind kind : kGeluKinds) {
    expect_agreement_at_any_size(
        [=](const Device& device, Operands& o, Sizes size) -> Outputs {
          const MatmulGeluBackward op{.dx = o.written({size.m, size.n}),
                                      .a = o.activation(1, {size.m, size.k}),
                                      .b = o.activation(2, {size.k, size.n}),
                                      .x = o.activation(3, {size.m, size.n}),
                                      .kind = kind};
          ops::run(device, op);
          return {op.dx};
        },
        kSlope, kRoundedTwice);
  }
}

TEST_F(CudaMatmul, WeightGradientIsWrittenOrAddedInF32) {
  for (const Update update : {Update::write, Update::accumulate}) {
    for (const bool has_bias : {false, true}) {
      expect_agreement_at_any_size([=](const Device& device, Operands& o, Sizes size) -> Outputs {
        const WeightGradient op{.dweight = o.f32(1, {size.n, size.k}),
                                .dbias = has_bias ? o.f32(2, {size.n}) : TensorView{},
                                .dy = o.activation(3, {size.m, size.n}),
                                .x = o.activation(4, {size.m, size.k}),
                                .update = update};
        ops::run(device, op);
        Outputs outputs{op.dweight};
        if (has_bias) outputs.push_back(op.dbias);
        return outputs;
      });
    }
  }
}

// The library chooses by the alignment of what an epilogue reads, too.
TEST_F(CudaMatmul, ABiasMayBeLessAlignedThanTheOneBefore) {
  expect_agreement_in_bf16(
      [](const Device& device, Operands& o) -> Outputs {
        const TensorView bias = o.activation(3, {96});
        Outputs outputs;
        for (const std::int64_t begin : {0, 8, 0}) {
          const Matmul op{.out = o.written({64, 48}),
                          .a = o.activation(1, {64, 32}),
                          .b = o.activation(2, {32, 48}),
                          .bias = bias.slice(begin, 48)};
          ops::run(device, op);
          outputs.push_back(op.out);
        }
        return outputs;
      },
      kRoundedTwice);
}

// Shapes for which the library knows no epilogue have kernels of our own behind the product.
TEST_F(CudaMatmul, WithoutAnEpilogueOfTheLibraryEqualsTheCpus) {
  setenv("REDSPINE_ON_HOST_NO_EPILOGUES", "1", 1);
  expect_agreement_in_bf16(
      [](const Device& device, Operands& o) -> Outputs {
        const TensorView a = o.activation(1, {64, 32});
        const TensorView weight = o.activation(2, {48, 32});
        const TensorView bias = o.activation(3, {48});
        const Matmul plain{.out = o.written({64, 48}),
                           .a = a,
                           .b = weight,
                           .transpose_b = Transpose::yes,
                           .bias = bias};
        ops::run(device, plain);
        const MatmulGelu gelu{.out = o.written({64, 48}),
                              .x = o.written({64, 48}),
                              .a = a,
                              .b = weight,
                              .bias = bias,
                              .kind = GeluKind::tanh};
        ops::run(device, gelu);
        const MatmulGeluBackward backward{.dx = o.written({64, 32}),
                                          .a = o.activation(4, {64, 48}),
                                          .b = weight,
                                          .x = a,
                                          .kind = GeluKind::tanh};
        ops::run(device, backward);
        return {plain.out, gelu.out, gelu.x, backward.dx};
      },
      kRoundedTwice);
  unsetenv("REDSPINE_ON_HOST_NO_EPILOGUES");
}

// Large enough that bf16 operands whose rows start anywhere are moved to aligned rows.
TEST_F(CudaMatmul, OfManyOddRowsEqualsTheCpus) {
  constexpr std::int64_t kRows = 300;
  constexpr std::int64_t kVocabulary = 257;
  expect_agreement(
      [](const Device& device, Operands& o) -> Outputs {
        const TensorView weight = o.activation(1, {kVocabulary, 24});
        const Matmul logits{.out = o.written({kRows, kVocabulary}),
                            .a = o.activation(2, {kRows, 24}),
                            .b = weight,
                            .transpose_b = Transpose::yes};
        ops::run(device, logits);
        const TensorView dlogits = o.activation(3, {kRows, kVocabulary});
        const Matmul input{.out = o.written({kRows, 24}), .a = dlogits, .b = weight};
        ops::run(device, input);
        const WeightGradient gradient{
            .dweight = o.f32(4, {kVocabulary, 24}), .dbias = {}, .dy = dlogits, .x = logits.a};
        ops::run(device, gradient);
        const Matmul both{
            .out = o.written({kRows, 259}), .a = dlogits, .b = o.activation(5, {kVocabulary, 259})};
        ops::run(device, both);
        return {logits.out, input.out, gradient.dweight, both.out};
      },
      kSums);
}

TEST_F(CudaMatmul, BiasGradientOfManyRowsEqualsTheCpus) {
  expect_agreement(
      [](const Device& device, Operands& o) -> Outputs {
        const WeightGradient op{.dweight = o.f32(1, {24, 1}),
                                .dbias = o.f32(2, {24}),
                                .dy = o.activation(3, {20'000, 24}),
                                .x = o.activation(4, {20'000, 1})};
        ops::run(device, op);
        return {op.dbias};
      },
      {.relative_to_largest = 2e-5});
}

}  // namespace
}  // namespace redspine
