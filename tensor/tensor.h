// Tensor owns memory on a device; everything else looks at it through views. A const tensor gives
// out const views only.
#pragma once

#include <memory>
#include <utility>

#include "tensor/device.h"
#include "tensor/view.h"

namespace redspine {

class Tensor {
 public:
  Tensor() = default;
  /// Zeroed. `device` must outlive the tensor.
  Tensor(Device& device, DType dtype, Shape shape)
      : device_(&device),
        view_(device.allocate(static_cast<std::size_t>(shape.count()) * size_of(dtype)), dtype,
              shape) {}
  Tensor(Tensor&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), view_(std::exchange(other.view_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(view_, other.view_);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() {
    if (device_ != nullptr) device_->deallocate(view_.raw());
  }

  TensorView view() { return view_; }
  ConstTensorView view() const { return view_; }
  operator TensorView() { return view_; }             // NOLINT: a tensor decays to its view
  operator ConstTensorView() const { return view_; }  // NOLINT
  const Shape& shape() const { return view_.shape(); }
  std::int64_t count() const { return view_.count(); }

 private:
  Device* device_ = nullptr;
  TensorView view_;
};

/// Owns host memory that copies from and to a device are fastest with, of any content at first.
class HostTensor {
 public:
  /// `device` must outlive the tensor.
  HostTensor(Device& device, DType dtype, Shape shape)
      : device_(device),
        view_(device.allocate_host(static_cast<std::size_t>(shape.count()) * size_of(dtype)), dtype,
              shape) {}
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
  ~HostTensor() { device_.deallocate_host(view_.raw()); }

  TensorView view() { return view_; }
  ConstTensorView view() const { return view_; }

 private:
  Device& device_;
  TensorView view_;
};

/// A view of host memory, as `upload` and `download` take it.
template <class T>
ConstTensorView host_view(std::span<const T> values) {
  return {values.data(), DTypeOf<T>::kValue, {static_cast<std::int64_t>(values.size())}};
}
template <class T>
TensorView host_view(std::span<T> values) {
  return {values.data(), DTypeOf<T>::kValue, {static_cast<std::int64_t>(values.size())}};
}

}  // namespace redspine
