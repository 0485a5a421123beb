// A device whose memory the host cannot reach: the CPU's, under addresses that fault when they are
// used as they are. What code for a GPU must not touch shows without one. It has no kernels.
#pragma once

#include <bit>
#include <memory>

#include "tensor/device.h"
#include "tensor/error.h"

namespace redspine::testing {

class FarDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string description() const override { return "far"; }
  std::string bus_id() const override { return "0000:00:00.0"; }
  const Kernels& kernels() const override { throw Error("a far device has no kernels"); }

  void* allocate(std::size_t bytes) override {
    allocated_bytes_ += static_cast<std::int64_t>(bytes);
    return moved(near_->allocate(bytes), kDistance);
  }
  /// Of everything that was allocated so far.
  std::int64_t used_bytes() const override { return allocated_bytes_; }
  void deallocate(void* memory) noexcept override { near_->deallocate(moved(memory, -kDistance)); }

  void upload(TensorView to, ConstTensorView from_host) override { write(to, from_host); }
  void download(TensorView to_host, ConstTensorView from) override { read(to_host, from); }
  void copy(TensorView to, ConstTensorView from) override { near_->copy(near(to), near(from)); }
  void zero(TensorView view) override { near_->zero(near(view)); }

  void read(TensorView to_host, ConstTensorView from) override { near_->read(to_host, near(from)); }
  void write(TensorView to, ConstTensorView from_host) override {
    near_->write(near(to), from_host);
  }
  void* allocate_host(std::size_t bytes) override { return near_->allocate_host(bytes); }
  void deallocate_host(void* memory) noexcept override { near_->deallocate_host(memory); }

  void enqueue(Stream stream, std::function<void()> function) override {
    near_->enqueue(stream, std::move(function));
  }
  void order(Stream first, Stream then) override { near_->order(first, then); }
  void synchronize(Stream stream) override { near_->synchronize(stream); }

 private:
  // No address that a process can have.
  static constexpr std::intptr_t kDistance = std::intptr_t{1} << 56;

  static void* moved(const void* address, std::intptr_t distance) {
    return std::bit_cast<void*>(std::bit_cast<std::intptr_t>(address) + distance);
  }
  static TensorView near(ConstTensorView view) {
    return {moved(view.raw(), -kDistance), view.dtype(), view.shape()};
  }

  std::int64_t allocated_bytes_ = 0;
  std::unique_ptr<Device> near_ = make_cpu_device(1);
};

}  // namespace redspine::testing
