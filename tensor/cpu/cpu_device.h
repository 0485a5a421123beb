// The CPU as a Device: `compute` is the calling thread (OpenMP threads work inside each kernel),
// every other stream is a HostStream. Local to a process; used from one thread.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "tensor/cpu/kernel_sets.h"
#include "tensor/device.h"
#include "tensor/host_stream.h"

namespace redspine {

class CpuDevice : public Device {
 public:
  /// Sets the number of OpenMP threads of the calling thread.
  CpuDevice(int num_threads, const CpuKernelSet& kernels);
  ~CpuDevice() override;

  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string description() const override;
  std::string bus_id() const override { return ""; }
  const Kernels& kernels() const override { return *kernels_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  std::int64_t used_bytes() const override;

  void upload(TensorView to, ConstTensorView from_host) override { copy(to, from_host); }
  void download(TensorView to_host, ConstTensorView from) override { copy(to_host, from); }
  void copy(TensorView to, ConstTensorView from) override;
  void zero(TensorView view) override;

  void read(TensorView to_host, ConstTensorView from) override { copy(to_host, from); }
  void write(TensorView to, ConstTensorView from_host) override { copy(to, from_host); }
  void* allocate_host(std::size_t bytes) override { return allocate(bytes); }
  void deallocate_host(void* memory) noexcept override { deallocate(memory); }

  void enqueue(Stream stream, std::function<void()> function) override;
  void order(Stream first, Stream then) override;
  void synchronize(Stream stream) override;

 private:
  HostStream& host_stream(Stream stream);

  int num_threads_;
  const char* kernels_name_;
  std::unique_ptr<const Kernels> kernels_;
  std::array<HostStream, kNumStreams - 1> host_streams_;  // [stream - 1]: compute has none
};

}  // namespace redspine
