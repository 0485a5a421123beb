#include "trainer/plan/recording_device.h"

#include <bit>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

// No address that a process can have: what reads or writes there ends at once.
constexpr std::uintptr_t kFirstAddress = std::uintptr_t{1} << 56;
constexpr std::uintptr_t kAlignment = 256;

}  // namespace

class RecordingDevice::RecordingKernels final : public Kernels {
 public:
  explicit RecordingKernels(RecordingDevice& device) : device_(device) {}

#define REDSPINE_RUN(Operation) \
  void run(const Operation& op) const override { device_.record(cost_of(op)); }
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN

 private:
  RecordingDevice& device_;
};

RecordingDevice::RecordingDevice(DeviceKind kind)
    : kind_(kind),
      kernels_(std::make_unique<RecordingKernels>(*this)),
      next_address_(kFirstAddress) {}

RecordingDevice::~RecordingDevice() = default;

StepTrace RecordingDevice::take_trace() { return std::exchange(trace_, {}); }

void RecordingDevice::record(const StepEvent& event) {
  if (is_recording_) trace_.push_back(event);
}

void* RecordingDevice::allocate(std::size_t bytes) {
  used_bytes_ += static_cast<std::int64_t>(bytes);
  const std::uintptr_t address = next_address_;
  next_address_ += (bytes + kAlignment) / kAlignment * kAlignment;
  return std::bit_cast<void*>(address);
}

void RecordingDevice::deallocate(void* /*memory*/) noexcept {}

void RecordingDevice::upload(TensorView to, ConstTensorView /*from_host*/) {
  record(cost_of_copy(to.bytes()));
}

void RecordingDevice::download(TensorView /*to_host*/, ConstTensorView /*from*/) {
  record(HostWait{Stream::compute});
}

void RecordingDevice::copy(TensorView to, ConstTensorView /*from*/) {
  record(cost_of_copy(to.bytes()));
}

void RecordingDevice::zero(TensorView view) { record(cost_of_fill(view.bytes())); }

void RecordingDevice::read(TensorView /*to_host*/, ConstTensorView /*from*/) {
  throw Error("there is nothing to read on a device that records");
}

void RecordingDevice::write(TensorView /*to*/, ConstTensorView /*from_host*/) {
  throw Error("there is nowhere to write to on a device that records");
}

void* RecordingDevice::allocate_host(std::size_t bytes) { return allocate(bytes); }

void RecordingDevice::deallocate_host(void* /*memory*/) noexcept {}

void RecordingDevice::enqueue(Stream /*stream*/, std::function<void()> /*function*/) {
  throw Error("a device that records runs no functions of the host");
}

void RecordingDevice::order(Stream first, Stream then) { record(StreamOrder{first, then}); }

void RecordingDevice::synchronize(Stream stream) { record(HostWait{stream}); }

}  // namespace redspine
