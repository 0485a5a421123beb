// One NVIDIA GPU as a Device: three CUDA streams, events between them, and page-locked memory for
// copies. Host functions run in one thread per stream (HostStream), since the driver might run
// all of them in one: two that wait for other ranks, in another order there, would wait for ever.
//
// Local to a process; used from one thread, in which the GPU is made current.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <functional>
#include <string>

#include "tensor/cuda/cuda_kernels.h"
#include "tensor/cuda/handles.h"
#include "tensor/cuda/pinned_copier.h"
#include "tensor/device.h"
#include "tensor/host_stream.h"

namespace redspine {

class CudaDevice final : public Device {
 public:
  /// Takes the GPU `number` of the visible ones.
  explicit CudaDevice(int number);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string description() const override;
  std::string bus_id() const override;
  const Kernels& kernels() const override { return kernels_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  std::int64_t used_bytes() const override;

  void upload(TensorView to, ConstTensorView from_host) override;
  void download(TensorView to_host, ConstTensorView from) override;
  void copy(TensorView to, ConstTensorView from) override;
  void zero(TensorView view) override;

  void read(TensorView to_host, ConstTensorView from) override;
  void write(TensorView to, ConstTensorView from_host) override;
  /// Page-locked.
  void* allocate_host(std::size_t bytes) override;
  void deallocate_host(void* memory) noexcept override;

  /// On `compute`, waits for the stream and calls the function at once.
  void enqueue(Stream stream, std::function<void()> function) override;
  void order(Stream first, Stream then) override;
  void synchronize(Stream stream) override;

  cudaStream_t stream(Stream stream) const;

 private:
  HostStream& host_stream(Stream stream);

  int number_;
  std::array<cuda::StreamOwner, kNumStreams> streams_;
  std::array<cuda::EventOwner, kNumStreams> order_events_;
  std::array<HostStream, kNumStreams - 1> host_streams_;  // [stream - 1]: compute has none
  cuda::PinnedCopier copier_;
  cuda::CudaKernels kernels_;
};

}  // namespace redspine
