// Runs one operation on the CPU and on the CUDA backend from the same values, and compares. The
// CUDA backend is whichever the executable links: a GPU's, or the one that runs on the host.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine::testing {

/// Operands on one device. Their values depend on the seed alone; where activations are bf16, the
/// f32 ones of the CPU have been rounded likewise.
class Operands {
 public:
  struct Options {
    DType activations = DType::f32;  // their values are representable in it
    DType stored = DType::f32;       // what they are stored as: f32 on the CPU
    std::int64_t offset = 0;         // elements before the first, so that it is not aligned
  };

  Operands(Device& device, Options options) : device_(device), options_(options) {}

  TensorView activation(unsigned seed, Shape shape);
  /// Activations from -9 to 9, whose sums are exact in bf16.
  TensorView small_integers(unsigned seed, Shape shape);
  TensorView f32(unsigned seed, Shape shape);
  /// Positive values.
  TensorView f32_squares(unsigned seed, Shape shape);
  /// Operands that are only written: NaN before.
  TensorView written(Shape shape);
  TensorView written_f32(Shape shape);
  TensorView written_bf16(Shape shape);
  TensorView ids(unsigned seed, std::int64_t count, std::int32_t first, std::int32_t last);
  TensorView samples(const std::vector<std::int64_t>& numbers);
  TensorView f64(double value);

 private:
  TensorView store(DType dtype, std::vector<float> values, Shape shape);

  Device& device_;
  Options options_;
  std::deque<Tensor> tensors_;
};

/// Runs the operation and gives its outputs.
using Operation = std::function<std::vector<TensorView>(const Device&, Operands&)>;

/// How far the CUDA backend may be from the CPU.
struct Tolerance {
  double relative_to_largest = 1e-6;  // of an output's largest magnitude
  double bf16_ulps = 1.0;             // of the rounded value, in addition, for outputs in bf16
};

/// One device of each kind for all runs of a test.
class BothBackends : public ::testing::Test {
 protected:
  BothBackends();

  /// In f32 and in bf16, aligned and not: both backends agree, and a second run on the CUDA backend
  /// gives the same bits.
  void expect_agreement(const Operation& run, Tolerance tolerance = {});
  void expect_agreement_in_f32(const Operation& run, Tolerance tolerance = {});
  void expect_agreement_in_bf16(const Operation& run, Tolerance tolerance = {});
  /// expect_agreement of a run that is given a matrix shape: odd ones, and those around the sizes
  /// of blocks and of accesses.
  using ShapedOperation = std::function<std::vector<TensorView>(const Device&, Operands&, Shape)>;
  void expect_agreement_at_any_shape(const ShapedOperation& run, Tolerance tolerance = {});

  const Device& cuda() const { return *cuda_; }

 private:
  void expect_agreement_of(const Operation& run, Operands::Options options, Tolerance tolerance);

  std::unique_ptr<Device> cpu_;
  std::unique_ptr<Device> cuda_;
};

}  // namespace redspine::testing
