// A device: its memory, copies to and from it, its streams, and the kernels that run on it.
//
// Work on one stream runs in the order it was given; `order` is the only way to order two streams.
// The CPU runs `compute` in the calling thread, and every other stream in a thread of its own.
// One Device per rank; it outlives every Tensor made on it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tensor/view.h"

namespace redspine {

class Kernels;

enum class DeviceKind { cpu, cuda };

/// What a stream is for. Communication has one stream per axis of the mesh, so that the long
/// all-reduce of a gradient bucket (data axis) never delays an activation (tensor axis).
enum class Stream { compute, activations, gradients };
inline constexpr int kNumStreams = 3;

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  /// Whether the host reads and writes this device's memory in place.
  bool has_host_memory() const { return kind() == DeviceKind::cpu; }
  /// One line for logs: the processor, and how much of it this rank uses.
  virtual std::string description() const = 0;
  /// What tells the device from the others of its host: the PCI bus id of a GPU. Empty for the CPU.
  virtual std::string bus_id() const = 0;
  virtual const Kernels& kernels() const = 0;

  /// `bytes` of zeroed memory, aligned to 64 bytes or more. Throws Error where there is none.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* memory) noexcept = 0;
  /// Of the device's memory: by all processes on a GPU, by this one on the CPU.
  virtual std::int64_t used_bytes() const = 0;

  /// Copies and fills on the compute stream. Counts and dtypes must agree.
  /// `upload` and `download` are from and to host memory; `download` returns when it is done.
  virtual void upload(TensorView to, ConstTensorView from_host) = 0;
  virtual void download(TensorView to_host, ConstTensorView from) = 0;
  virtual void copy(TensorView to, ConstTensorView from) = 0;
  virtual void zero(TensorView view) = 0;

  /// Copies for the host functions that `enqueue` takes: at once, in no stream's order, from any
  /// thread. They return when they are done.
  virtual void read(TensorView to_host, ConstTensorView from) = 0;
  virtual void write(TensorView to, ConstTensorView from_host) = 0;
  /// Host memory that copies from and to the device are fastest with, of any content. Throws Error
  /// where there is none.
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void deallocate_host(void* memory) noexcept = 0;

  /// Runs a host function in the stream's order. An exception in it is rethrown by the next
  /// `order(stream, compute)` or `synchronize(stream)`.
  virtual void enqueue(Stream stream, std::function<void()> function) = 0;
  /// Whatever is given to `then` after this call waits for everything given to `first` before it.
  virtual void order(Stream first, Stream then) = 0;
  /// Returns when everything given to `stream` is done.
  virtual void synchronize(Stream stream) = 0;
};

/// The CPU as a device; kernels use `num_threads` threads.
std::unique_ptr<Device> make_cpu_device(int num_threads);

/// The CUDA device of this rank: number `local_rank` modulo those that are visible. Throws
/// ConfigError where the program, the driver or the hardware lacks what it takes.
/// Which backend defines it is chosen for each executable: property REDSPINE_DEVICE in CMake.
std::unique_ptr<Device> make_cuda_device(int local_rank);

/// CUDA devices that this process sees; 0 also where the program or the driver lacks what it takes.
int num_cuda_devices();

/// The versions of CUDA and of its libraries; empty where they are not in this build.
std::string cuda_description();

}  // namespace redspine
