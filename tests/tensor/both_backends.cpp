#include "tests/tensor/both_backends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

std::vector<BFloat16> rounded(const std::vector<float>& values) {
  std::vector<BFloat16> result;
  for (const float value : values) result.emplace_back(value);
  return result;
}

std::vector<float> nans(const Shape& shape) {
  return std::vector<float>(static_cast<std::size_t>(shape.count()),
                            std::numeric_limits<float>::quiet_NaN());
}

// What one output holds, widened.
struct Output {
  DType dtype;
  std::vector<double> values;

  bool operator==(const Output&) const = default;
};

template <class T>
Output download(Device& device, TensorView view) {
  Output output{view.dtype(), {}};
  for (const T value : from_device<T>(device, view)) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      output.values.push_back(static_cast<double>(static_cast<float>(value)));
    } else {
      output.values.push_back(static_cast<double>(value));
    }
  }
  return output;
}

std::vector<Output> outputs_of(Device& device, const Operation& run, Operands::Options options) {
  Operands operands(device, options);
  std::vector<Output> outputs;
  for (const TensorView view : run(device, operands)) {
    outputs.push_back(view.dtype() == DType::f64    ? download<double>(device, view)
                      : view.dtype() == DType::bf16 ? download<BFloat16>(device, view)
                                                    : download<float>(device, view));
  }
  return outputs;
}

double round_to_bf16(double value) {
  return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(value))));
}

// The distance to the next bf16: 8 significant bits.
double bf16_ulp(double value) {
  return std::ldexp(1.0, std::max(std::ilogb(std::max(std::abs(value), 1e-38)), -126) - 7);
}

void expect_close(const Output& actual, const Output& expected, Tolerance tolerance) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  double largest = 0.0;
  for (const double value : expected.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    double wanted = expected.values[i];
    double allowed = tolerance.relative_to_largest * largest;
    if (actual.dtype == DType::bf16) {
      wanted = round_to_bf16(wanted);
      allowed += tolerance.bf16_ulps * bf16_ulp(wanted);
    }
    if (actual.values[i] == wanted) continue;  // infinities
    ASSERT_LE(std::abs(actual.values[i] - wanted), allowed)
        << "element " << i << " of " << expected.values.size() << " in " << name_of(actual.dtype)
        << ": " << actual.values[i] << " for " << wanted;
  }
}

}  // namespace

TensorView Operands::store(DType dtype, std::vector<float> values, Shape shape) {
  const auto offset = static_cast<std::size_t>(options_.offset);
  values.insert(values.begin(), offset, 0.0F);
  const Shape flat{static_cast<std::int64_t>(values.size())};
  Tensor& tensor =
      tensors_.emplace_back(dtype == DType::bf16 ? to_device(device_, rounded(values), flat)
                                                 : to_device(device_, values, flat));
  return tensor.view().slice(options_.offset, shape.count()).reshape(shape);
}

TensorView Operands::activation(unsigned seed, Shape shape) {
  std::vector<float> values = random_values(shape.count(), seed);
  if (options_.activations == DType::bf16) {
    for (float& value : values) value = static_cast<float>(BFloat16(value));
  }
  return store(options_.stored, values, shape);
}

TensorView Operands::small_integers(unsigned seed, Shape shape) {
  const std::vector<std::int32_t> integers = random_ids(shape.count(), seed, -9, 9);
  return store(options_.stored, {integers.begin(), integers.end()}, shape);
}

TensorView Operands::f32(unsigned seed, Shape shape) {
  return store(DType::f32, random_values(shape.count(), seed), shape);
}

TensorView Operands::f32_squares(unsigned seed, Shape shape) {
  std::vector<float> values = random_values(shape.count(), seed);
  for (float& value : values) value = value * value + 1e-3F;
  return store(DType::f32, values, shape);
}

TensorView Operands::written(Shape shape) { return store(options_.stored, nans(shape), shape); }
TensorView Operands::written_f32(Shape shape) { return store(DType::f32, nans(shape), shape); }
TensorView Operands::written_bf16(Shape shape) { return store(DType::bf16, nans(shape), shape); }

TensorView Operands::ids(unsigned seed, std::int64_t count, std::int32_t first, std::int32_t last) {
  return tensors_.emplace_back(to_device(device_, random_ids(count, seed, first, last), {count}));
}

TensorView Operands::samples(const std::vector<std::int64_t>& numbers) {
  return tensors_.emplace_back(
      to_device(device_, numbers, {static_cast<std::int64_t>(numbers.size())}));
}

TensorView Operands::f64(double value) {
  return tensors_.emplace_back(to_device(device_, std::vector<double>{value}, {1}));
}

BothBackends::BothBackends() : cpu_(make_cpu_device(1)), cuda_(make_cuda_device(0)) {}

void BothBackends::expect_agreement_of(const Operation& run, Operands::Options options,
                                       Tolerance tolerance) {
  SCOPED_TRACE(std::string("activations in ") + name_of(options.activations) + ", offset " +
               std::to_string(options.offset));
  const auto expected = outputs_of(*cpu_, run, options);
  options.stored = options.activations;
  const auto actual = outputs_of(*cuda_, run, options);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expect_close(actual[i], expected[i], tolerance);
  }
  EXPECT_TRUE(outputs_of(*cuda_, run, options) == actual) << "a second run gave other bits";
}

void BothBackends::expect_agreement_in_f32(const Operation& run, Tolerance tolerance) {
  for (const std::int64_t offset : {0, 1}) {
    expect_agreement_of(run, {.offset = offset}, tolerance);
  }
}

void BothBackends::expect_agreement_in_bf16(const Operation& run, Tolerance tolerance) {
  for (const std::int64_t offset : {0, 1}) {
    expect_agreement_of(run, {.activations = DType::bf16, .offset = offset}, tolerance);
  }
}

void BothBackends::expect_agreement(const Operation& run, Tolerance tolerance) {
  expect_agreement_in_f32(run, tolerance);
  expect_agreement_in_bf16(run, tolerance);
}

// Odd sizes, sizes around those of blocks and of accesses, and common ones.
void BothBackends::expect_agreement_at_any_shape(const ShapedOperation& run, Tolerance tolerance) {
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 8}, Shape{2, 7}, Shape{3, 33}, Shape{64, 64},
                             Shape{77, 257}, Shape{5, 768}, Shape{300, 40}, Shape{131, 129}}) {
    SCOPED_TRACE(shape.to_string());
    expect_agreement([&](const Device& device, Operands& o) { return run(device, o, shape); },
                     tolerance);
  }
}

}  // namespace redspine::testing
