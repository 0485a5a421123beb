#include "tensor/cuda/cuda_device.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "tensor/cuda/check.h"
#include "tensor/cuda/cuda_stream.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr int kMinComputeCapability = 8;  // what the kernels are compiled for, at least

int select(int number) {
  check_cuda(cudaSetDevice(number), "cudaSetDevice");
  return number;
}

// Traffic goes before arithmetic: it starts as soon as it can, and others wait for it.
cuda::StreamOwner make_stream(Stream role) {
  int least = 0;
  int greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          role == Stream::compute ? least : greatest),
             "cudaStreamCreateWithPriority");
  return cuda::StreamOwner(stream);
}

cudaDeviceProp properties_of(int number) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  return properties;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

[[noreturn]] void reject(const std::string& reason) {
  throw ConfigError("run.device",
                    fmt::format("cuda cannot be used: {}; legal here: auto, cpu", reason));
}

// Why there is no device, in the words of someone who has to change it.
std::string reason_of(cudaError_t status) {
  int driver = 0;
  int runtime = 0;
  if (status == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
      cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
    if (driver == 0) return "this machine has no NVIDIA driver";
    return fmt::format("the NVIDIA driver is for CUDA {}, this program needs CUDA {}",
                       version_text(driver), version_text(runtime));
  }
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    return "the NVIDIA driver shows no device (is CUDA_VISIBLE_DEVICES set?)";
  }
  return fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace

CudaDevice::CudaDevice(int number)
    : number_(select(number)),
      streams_{make_stream(Stream::compute), make_stream(Stream::activations),
               make_stream(Stream::gradients)},
      order_events_{cuda::make_event(), cuda::make_event(), cuda::make_event()},
      copier_(stream(Stream::compute)),
      kernels_(stream(Stream::compute)) {}

CudaDevice::~CudaDevice() {
  // A function of one stream may be waiting for another, so all end before the first goes.
  for (HostStream& stream : host_streams_) stream.drain();
  for (const cuda::StreamOwner& stream : streams_) cudaStreamSynchronize(stream.get());
}

std::string CudaDevice::description() const {
  const cudaDeviceProp properties = properties_of(number_);
  return fmt::format("cuda: {}, compute capability {}.{}, {:.1f} GiB, PCI {}, bf16 attention {}",
                     properties.name, properties.major, properties.minor,
                     static_cast<double>(properties.totalGlobalMem) / (1 << 30), bus_id(),
                     kernels_.has_fused_attention() ? "by cuDNN" : "without cuDNN");
}

std::string CudaDevice::bus_id() const {
  char text[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(text, sizeof(text), number_), "cudaDeviceGetPCIBusId");
  return text;
}

void* CudaDevice::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the device goes on; nobody is to find this failure later
    std::size_t free = 0;
    std::size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw Error(fmt::format("cannot allocate {} bytes on a GPU with {} of {} bytes free", bytes,
                            free, total));
  }
  check_cuda(status, "cudaMalloc");
  // Complete when it returns, since any stream may be the first to use it.
  cudaStream_t compute = stream(Stream::compute);
  check_cuda(cudaMemsetAsync(memory, 0, bytes, compute), "cudaMemsetAsync");
  check_cuda(cudaStreamSynchronize(compute), "cudaStreamSynchronize");
  return memory;
}

void CudaDevice::deallocate(void* memory) noexcept { cudaFree(memory); }

std::int64_t CudaDevice::used_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(total - free);
}

void CudaDevice::upload(TensorView to, ConstTensorView from_host) {
  check_copy(to, from_host);
  copier_.upload(to.raw(), from_host.raw(), to.bytes());
}

void CudaDevice::download(TensorView to_host, ConstTensorView from) {
  check_copy(to_host, from);
  copier_.download(to_host.raw(), from.raw(), from.bytes());
}

void CudaDevice::copy(TensorView to, ConstTensorView from) {
  check_copy(to, from);
  if (to.count() == 0) return;
  check_cuda(cudaMemcpyAsync(to.raw(), from.raw(), to.bytes(), cudaMemcpyDeviceToDevice,
                             stream(Stream::compute)),
             "cudaMemcpyAsync");
}

void CudaDevice::zero(TensorView view) {
  if (view.count() == 0) return;
  check_cuda(cudaMemsetAsync(view.raw(), 0, view.bytes(), stream(Stream::compute)),
             "cudaMemsetAsync");
}

// The streams do not wait for the null stream, where these copies go, nor it for them.
void CudaDevice::read(TensorView to_host, ConstTensorView from) {
  check_copy(to_host, from);
  check_cuda(cudaMemcpy(to_host.raw(), from.raw(), from.bytes(), cudaMemcpyDeviceToHost),
             "cudaMemcpy to the host");
}

void CudaDevice::write(TensorView to, ConstTensorView from_host) {
  check_copy(to, from_host);
  check_cuda(cudaMemcpy(to.raw(), from_host.raw(), to.bytes(), cudaMemcpyHostToDevice),
             "cudaMemcpy to the device");
  // From pageable memory, the call returns when the bytes are on their way.
  constexpr cudaStream_t kNullStream = nullptr;
  check_cuda(cudaStreamSynchronize(kNullStream), "cudaStreamSynchronize");
}

void* CudaDevice::allocate_host(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault),
             "cudaHostAlloc");
  return memory;
}

void CudaDevice::deallocate_host(void* memory) noexcept { cudaFreeHost(memory); }

void CudaDevice::enqueue(Stream stream, std::function<void()> function) {
  if (stream == Stream::compute) {
    synchronize(stream);
    function();
    return;
  }
  // An event of its own: to record one again moves what is waited for.
  auto reached = std::make_shared<cuda::EventOwner>(cuda::make_event());
  check_cuda(cudaEventRecord(reached->get(), this->stream(stream)), "cudaEventRecord");
  host_stream(stream).enqueue([number = number_, reached, function = std::move(function)] {
    check_cuda(cudaSetDevice(number), "cudaSetDevice");
    check_cuda(cudaEventSynchronize(reached->get()), "cudaEventSynchronize");
    function();
  });
}

void CudaDevice::order(Stream first, Stream then) {
  if (first == then) return;
  if (first != Stream::compute) host_stream(first).wait();
  cudaEvent_t event = order_events_[static_cast<std::size_t>(first)].get();
  check_cuda(cudaEventRecord(event, stream(first)), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream(then), event), "cudaStreamWaitEvent");
}

void CudaDevice::synchronize(Stream stream) {
  if (stream != Stream::compute) host_stream(stream).wait();
  check_cuda(cudaStreamSynchronize(this->stream(stream)), "cudaStreamSynchronize");
}

cudaStream_t CudaDevice::stream(Stream stream) const {
  return streams_[static_cast<std::size_t>(stream)].get();
}

HostStream& CudaDevice::host_stream(Stream stream) {
  assert(stream != Stream::compute);
  return host_streams_[static_cast<std::size_t>(stream) - 1];
}

cudaStream_t cuda_stream(Device& device, Stream stream) {
  assert(device.kind() == DeviceKind::cuda);
  return static_cast<CudaDevice&>(device).stream(stream);
}

std::unique_ptr<Device> make_cuda_device(int local_rank) {
  int num_devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&num_devices);
  if (status != cudaSuccess || num_devices == 0) reject(reason_of(status));
  const int number = local_rank % num_devices;
  const cudaDeviceProp properties = properties_of(number);
  if (properties.major < kMinComputeCapability) {
    reject(fmt::format("{} has compute capability {}.{}, the least is {}.0", properties.name,
                       properties.major, properties.minor, kMinComputeCapability));
  }
  cublasLtGetVersion();  // a missing library is told before there is anything on the device
  return std::make_unique<CudaDevice>(number);
}

}  // namespace redspine
