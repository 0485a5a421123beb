// The stand-in of cuBLASLt multiplies as the documentation says, and refuses what it forbids.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/cuda_on_host/device_fixture.h"

namespace redspine {
namespace {

struct Product {
  std::int64_t m = 5;
  std::int64_t n = 3;
  std::int64_t k = 4;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float beta = 0.0F;
  std::int64_t aux_ld = 8;
  std::int64_t ld_of_d = 5;
};

float sample(std::int64_t i) { return static_cast<float>(i * 7 % 11 - 5) / 4.0F; }

std::vector<float> samples(std::int64_t count, std::int64_t from) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(sample(from + i));
  return values;
}

class BlasLt : public CudaOnHost {
 protected:
  BlasLt() { cublasLtCreate(&library_); }
  ~BlasLt() override { cublasLtDestroy(library_); }

  template <class T>
  static void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                  T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }

  static cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                               static_cast<std::uint64_t>(cols), ld);
    return layout;
  }

  // Runs the product over arrays of the members below; the status of whatever came first.
  cublasStatus_t run(const Product& p) {
    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(bias.get()));
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux.get()));
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.aux_ld);
    const bool a_is_plain = p.transpose_a == CUBLAS_OP_N;
    const bool b_is_plain = p.transpose_b == CUBLAS_OP_N;
    const cublasLtMatrixLayout_t a_layout =
        a_is_plain ? layout(p.m, p.k, p.m) : layout(p.k, p.m, p.k);
    const cublasLtMatrixLayout_t b_layout =
        b_is_plain ? layout(p.k, p.n, p.k) : layout(p.n, p.k, p.n);
    const cublasLtMatrixLayout_t d_layout = layout(p.m, p.n, p.ld_of_d);
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t result{};
    int num_found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(library_, description, a_layout, b_layout, d_layout,
                                       d_layout, preference, 1, &result, &num_found);
    if (status == CUBLAS_STATUS_SUCCESS) {
      const float alpha = 1.0F;
      status = cublasLtMatmul(library_, description, &alpha, a.get() + a_offset, a_layout, b.get(),
                              b_layout, &p.beta, d.get(), d_layout, d.get(), d_layout, &result.algo,
                              nullptr, 0, stream);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t used : {a_layout, b_layout, d_layout}) {
      cublasLtMatrixLayoutDestroy(used);
    }
    cublasLtMatmulDescDestroy(description);
    return status;
  }

  static constexpr std::int64_t kCount = 40;
  DeviceArray<float> a{samples(kCount, 0)};
  DeviceArray<float> b{samples(kCount, 100)};
  DeviceArray<float> d{samples(15, 200)};
  DeviceArray<float> bias{samples(8, 300)};
  DeviceArray<float> aux{samples(kCount, 400)};
  std::int64_t a_offset = 0;

 private:
  cublasLtHandle_t library_ = nullptr;
};

float product_at(const Product& p, std::int64_t row, std::int64_t col) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < p.k; ++i) {
    sum += sample(p.transpose_a == CUBLAS_OP_N ? i * p.m + row : row * p.k + i) *
           sample(100 + (p.transpose_b == CUBLAS_OP_N ? col * p.k + i : i * p.n + col));
  }
  return sum + (p.beta == 0.0F ? 0.0F : p.beta * sample(200 + col * p.m + row));
}

float gelu(float x) {
  return 0.5F * x * (1.0F + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
}

TEST_F(BlasLt, MultipliesEveryTransposeAndAccumulates) {
  for (const auto transpose_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const auto transpose_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      for (const float beta : {0.0F, 1.0F}) {
        const Product p{.transpose_a = transpose_a, .transpose_b = transpose_b, .beta = beta};
        const std::vector<float> before = samples(15, 200);
        cudaMemcpy(d.get(), before.data(), 15 * sizeof(float), cudaMemcpyHostToDevice);
        cudaStreamSynchronize(nullptr);
        ASSERT_EQ(run(p), CUBLAS_STATUS_SUCCESS);
        ASSERT_EQ(outcome(), "");
        const std::vector<float> out = d.values();
        for (std::int64_t i = 0; i < 15; ++i) {
          EXPECT_NEAR(out[static_cast<std::size_t>(i)], product_at(p, i % 5, i / 5), 1e-5);
        }
      }
    }
  }
}

TEST_F(BlasLt, AddsABiasARowAndKeepsWhatGeluGets) {
  const Product p{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS};
  ASSERT_EQ(run(p), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(outcome(), "");
  for (std::int64_t i = 0; i < 15; ++i) {
    const float x = product_at(p, i % 5, i / 5) + sample(300 + i % 5);
    EXPECT_NEAR(d.values()[static_cast<std::size_t>(i)], gelu(x), 1e-5);
    EXPECT_NEAR(aux.values()[static_cast<std::size_t>(i / 5 * 8 + i % 5)], x, 1e-5);
  }
}

TEST_F(BlasLt, TakesTheDerivativeOfGeluAndSumsTheBiasGradient) {
  const Product p{.epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD};
  ASSERT_EQ(run(p), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(outcome(), "");
  std::vector<float> sums(5);
  for (std::int64_t i = 0; i < 15; ++i) {
    const float x = sample(400 + i / 5 * 8 + i % 5);
    const float slope = (gelu(x + 1e-2F) - gelu(x - 1e-2F)) / 2e-2F;
    const float value = d.values()[static_cast<std::size_t>(i)];
    EXPECT_NEAR(value, product_at(p, i % 5, i / 5) * slope, 1e-3);
    sums[static_cast<std::size_t>(i % 5)] += value;
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(bias.values()[i], sums[i], 1e-5);
}

TEST_F(BlasLt, SumsAnInputAlongTheCommonDimForTheGradientOfABias) {
  for (const auto transpose : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    Product p{.transpose_a = transpose, .transpose_b = transpose};
    p.epilogue = CUBLASLT_EPILOGUE_BGRADA;
    ASSERT_EQ(run(p), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(outcome(), "");
    const std::vector<float> of_a = bias.values();
    p.epilogue = CUBLASLT_EPILOGUE_BGRADB;
    ASSERT_EQ(run(p), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(outcome(), "");
    const std::vector<float> of_b = bias.values();
    for (std::int64_t row = 0; row < 5; ++row) {
      float sum = 0.0F;
      for (std::int64_t i = 0; i < 4; ++i) {
        sum += sample(transpose == CUBLAS_OP_N ? i * 5 + row : row * 4 + i);
      }
      EXPECT_NEAR(of_a[static_cast<std::size_t>(row)], sum, 1e-5);
    }
    for (std::int64_t col = 0; col < 3; ++col) {
      float sum = 0.0F;
      for (std::int64_t i = 0; i < 4; ++i) {
        sum += sample(100 + (transpose == CUBLAS_OP_N ? col * 4 + i : i * 3 + col));
      }
      EXPECT_NEAR(of_b[static_cast<std::size_t>(col)], sum, 1e-5);
    }
  }
}

TEST_F(BlasLt, RefusesWhatTheLibraryForbids) {
  EXPECT_EQ(run({.ld_of_d = 4}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run({.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, .aux_ld = 5}),
            CUBLAS_STATUS_INVALID_VALUE);
  a_offset = 1;  // the heuristic was told of 256 bytes
  EXPECT_EQ(run({}), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(BlasLt, AMatrixThatReachesOutOfItsAllocationIsReported) {
  EXPECT_EQ(run({.n = 20}), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(outcome().find("the 320 bytes of B are not within an allocation"), std::string::npos)
      << outcome();
}

TEST(BFloat16OnHost, RoundsToNearestEven) {
  for (const auto& [value, bits] : std::vector<std::pair<float, unsigned>>{{1.0F, 0x3f80},
                                                                           {1.00390625F, 0x3f80},
                                                                           {1.01171875F, 0x3f82},
                                                                           {-2.0F, 0xc000},
                                                                           {3.4e38F, 0x7f80},
                                                                           {INFINITY, 0x7f80}}) {
    EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16_rn(value)), bits) << value;
  }
  EXPECT_TRUE(std::isnan(__bfloat162float(__float2bfloat16_rn(NAN))));
}

}  // namespace
}  // namespace redspine
