// Random values, and their way to a device and back. What a test computes with in f64 and what the
// kernel computes with in f32 start from the same f32 values.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tensor/device.h"
#include "tensor/tensor.h"

namespace redspine::testing {

/// `count` normal values of the given spread; the same for the same seed.
inline std::vector<float> random_values(std::int64_t count, unsigned seed, float spread = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

/// `count` ids from [first, last].
inline std::vector<std::int32_t> random_ids(std::int64_t count, unsigned seed, std::int32_t first,
                                            std::int32_t last) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> uniform(first, last);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::int32_t& id : ids) id = uniform(generator);
  return ids;
}

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

template <class T>
Tensor to_device(Device& device, const std::vector<T>& values, Shape shape) {
  Tensor tensor(device, DTypeOf<T>::kValue, shape);
  device.upload(tensor, ConstTensorView(values.data(), DTypeOf<T>::kValue, shape));
  return tensor;
}

template <class T = float>
std::vector<T> from_device(Device& device, ConstTensorView view) {
  std::vector<T> values(static_cast<std::size_t>(view.count()));
  device.download(TensorView(values.data(), DTypeOf<T>::kValue, view.shape()), view);
  return values;
}

}  // namespace redspine::testing
