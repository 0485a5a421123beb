// Host memory for tensors that pass through, one after another: grows to the largest of them and is
// never filled with zeros, which would cost as much as reading or writing a tensor. Where a
// device's memory is the host's own, nothing passes through. Local.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/view.h"

namespace redspine {

inline std::span<const float> host_values(ConstTensorView view) {
  return {view.data<float>(), static_cast<std::size_t>(view.count())};
}
inline std::span<float> host_values(TensorView view) {
  return {view.data<float>(), static_cast<std::size_t>(view.count())};
}

class HostBuffer {
 public:
  /// `count` elements of any value; what was taken before is gone.
  std::span<float> take(std::int64_t count) {
    const auto size = static_cast<std::size_t>(count);
    if (size > capacity_) {
      values_.reset();  // before the larger one, so that both never exist at once
      values_ = std::make_unique_for_overwrite<float[]>(size);
      capacity_ = size;
    }
    return {values_.get(), size};
  }

 private:
  std::unique_ptr<float[]> values_;
  std::size_t capacity_ = 0;
};

}  // namespace redspine
