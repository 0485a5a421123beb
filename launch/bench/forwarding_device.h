// A device that leaves everything to another one: for wrappers that look at some of it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tensor/device.h"

namespace redspine {

class ForwardingDevice : public Device {
 public:
  /// `inner` outlives it.
  explicit ForwardingDevice(Device& inner) : inner_(inner) {}

  DeviceKind kind() const override { return inner_.kind(); }
  std::string description() const override { return inner_.description(); }
  std::string bus_id() const override { return inner_.bus_id(); }
  const Kernels& kernels() const override { return inner_.kernels(); }
  std::int64_t used_bytes() const override { return inner_.used_bytes(); }
  void* allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void deallocate(void* memory) noexcept override { inner_.deallocate(memory); }
  void upload(TensorView to, ConstTensorView from_host) override { inner_.upload(to, from_host); }
  void download(TensorView to_host, ConstTensorView from) override {
    inner_.download(to_host, from);
  }
  void copy(TensorView to, ConstTensorView from) override { inner_.copy(to, from); }
  void zero(TensorView view) override { inner_.zero(view); }
  void read(TensorView to_host, ConstTensorView from) override { inner_.read(to_host, from); }
  void write(TensorView to, ConstTensorView from_host) override { inner_.write(to, from_host); }
  void* allocate_host(std::size_t bytes) override { return inner_.allocate_host(bytes); }
  void deallocate_host(void* memory) noexcept override { inner_.deallocate_host(memory); }
  void enqueue(Stream stream, std::function<void()> function) override {
    inner_.enqueue(stream, std::move(function));
  }
  void order(Stream first, Stream then) override { inner_.order(first, then); }
  void synchronize(Stream stream) override { inner_.synchronize(stream); }

 protected:
  Device& inner() const { return inner_; }

 private:
  Device& inner_;
};

}  // namespace redspine
