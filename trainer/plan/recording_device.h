// Stands for a device of a kind and for the ranks around it: gives out addresses with nothing
// behind them, adds up what was asked for, and writes down what it is given to do. So what a plan
// says of a step is what the code of the step does. Local.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "parallel/group/communicator.h"
#include "tensor/device.h"
#include "tensor/kernels.h"
#include "trainer/plan/step_trace.h"

namespace redspine {

class RecordingDevice final : public Device {
 public:
  explicit RecordingDevice(DeviceKind kind);
  ~RecordingDevice() override;

  /// What was recorded since the last call. Nothing is, until start() has been called.
  StepTrace take_trace();
  void start() { is_recording_ = true; }
  /// For whoever shares the trace: a communicator.
  void record(const StepEvent& event);

  DeviceKind kind() const override { return kind_; }
  std::string description() const override { return "a device that records"; }
  std::string bus_id() const override { return ""; }
  const Kernels& kernels() const override { return *kernels_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  /// Of all that was allocated so far, whether or not it still is.
  std::int64_t used_bytes() const override { return used_bytes_; }

  void upload(TensorView to, ConstTensorView from_host) override;
  void download(TensorView to_host, ConstTensorView from) override;
  void copy(TensorView to, ConstTensorView from) override;
  void zero(TensorView view) override;
  void read(TensorView to_host, ConstTensorView from) override;
  void write(TensorView to, ConstTensorView from_host) override;
  void* allocate_host(std::size_t bytes) override;
  void deallocate_host(void* memory) noexcept override;
  void enqueue(Stream stream, std::function<void()> function) override;
  void order(Stream first, Stream then) override;
  void synchronize(Stream stream) override;

 private:
  class RecordingKernels;

  DeviceKind kind_;
  std::unique_ptr<Kernels> kernels_;
  std::uintptr_t next_address_;
  std::int64_t used_bytes_ = 0;
  bool is_recording_ = false;
  StepTrace trace_;
};

/// The collectives along an axis, for a rank of it: they are recorded by `device`, which outlives
/// this.
std::unique_ptr<Communicator> make_recording_communicator(Axis axis, const ProcessGroup& group,
                                                          RecordingDevice& device);

}  // namespace redspine
