#include "tensor/cpu/cpu_device.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "tensor/cpu_kernel_choice.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::size_t kCacheLineBytes = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kHugeAllocationBytes = 2 * kHugePageBytes;
// Below this the start of the threads costs more than the copy.
constexpr std::size_t kParallelBytes = std::size_t{1} << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::size_t physical_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Calls body(begin, end) for slices of [0, bytes), each thread its own, cut at page boundaries.
template <class Body>
void for_each_slice(std::size_t bytes, const Body& body) {
  if (bytes < kParallelBytes) {
    if (bytes > 0) body(std::size_t{0}, bytes);
    return;
  }
#pragma omp parallel
  {
    const auto num_threads = static_cast<std::size_t>(omp_get_num_threads());
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const std::size_t slice = round_up((bytes + num_threads - 1) / num_threads, 4096);
    const std::size_t begin = std::min(bytes, thread * slice);
    const std::size_t end = std::min(bytes, begin + slice);
    if (begin < end) body(begin, end);
  }
}

void fill_with_zeros(void* memory, std::size_t bytes) {
  auto* to = static_cast<char*>(memory);
  for_each_slice(
      bytes, [&](std::size_t begin, std::size_t end) { std::memset(to + begin, 0, end - begin); });
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace

CpuDevice::CpuDevice(int num_threads, const CpuKernelSet& kernels)
    : num_threads_(num_threads), kernels_name_(kernels.name), kernels_(kernels.make()) {
  if (num_threads < 1) {
    throw Error(fmt::format("a CPU device needs at least 1 thread, not {}", num_threads));
  }
  omp_set_num_threads(num_threads);
}

CpuDevice::~CpuDevice() {
  // A function of one stream may be waiting for another, so all end before the first goes.
  for (HostStream& stream : host_streams_) stream.drain();
}

std::string CpuDevice::description() const {
  return fmt::format("cpu: {}, {} thread{}, {} kernels", processor_name(), num_threads_,
                     num_threads_ == 1 ? "" : "s", kernels_name_);
}

void* CpuDevice::allocate(std::size_t bytes) {
  const std::size_t physical = physical_memory_bytes();
  void* memory = nullptr;
  if (bytes <= physical) {  // the kernel would grant more, and kill the job when it is touched
    const std::size_t alignment = bytes < kHugeAllocationBytes ? kCacheLineBytes : kHugePageBytes;
    const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), alignment);
    memory = std::aligned_alloc(alignment, rounded);
    // Only advice: a kernel without huge pages refuses it, and nothing is lost.
    if (memory != nullptr && alignment == kHugePageBytes) {
      madvise(memory, rounded, MADV_HUGEPAGE);
    }
  }
  if (memory == nullptr) {
    throw Error(fmt::format("cannot allocate {} bytes on a machine with {} bytes of memory", bytes,
                            physical));
  }
  fill_with_zeros(memory, bytes);  // the first touch places a page near the thread that uses it
  return memory;
}

void CpuDevice::deallocate(void* memory) noexcept { std::free(memory); }

std::int64_t CpuDevice::used_bytes() const {
  // The second number is that of the pages in memory.
  std::ifstream file("/proc/self/statm");
  std::int64_t num_pages = 0;
  file >> num_pages >> num_pages;
  return num_pages * sysconf(_SC_PAGESIZE);
}

void CpuDevice::copy(TensorView to, ConstTensorView from) {
  check_copy(to, from);
  auto* target = static_cast<char*>(to.raw());
  const auto* source = static_cast<const char*>(from.raw());
  for_each_slice(to.bytes(), [&](std::size_t begin, std::size_t end) {
    std::memcpy(target + begin, source + begin, end - begin);
  });
}

void CpuDevice::zero(TensorView view) { fill_with_zeros(view.raw(), view.bytes()); }

void CpuDevice::enqueue(Stream stream, std::function<void()> function) {
  if (stream == Stream::compute) {
    function();
  } else {
    host_stream(stream).enqueue(std::move(function));
  }
}

void CpuDevice::order(Stream first, Stream then) {
  // Whatever was given to `compute` is already done.
  if (first == then || first == Stream::compute) return;
  HostStream& awaited = host_stream(first);
  if (then == Stream::compute) {
    awaited.wait();
  } else {
    host_stream(then).enqueue([&awaited, tail = awaited.tail()] { awaited.wait_until(tail); });
  }
}

void CpuDevice::synchronize(Stream stream) {
  if (stream != Stream::compute) host_stream(stream).wait();
}

HostStream& CpuDevice::host_stream(Stream stream) {
  assert(stream != Stream::compute);
  return host_streams_[static_cast<std::size_t>(stream) - 1];
}

std::unique_ptr<Device> make_cpu_device(int num_threads) {
  return make_cpu_device(num_threads, cpu_kernels());
}

std::unique_ptr<Device> make_cpu_device(int num_threads, const std::string& kernels) {
  return std::make_unique<CpuDevice>(num_threads, choose_kernel_set(cpu_kernel_sets(), kernels));
}

}  // namespace redspine
