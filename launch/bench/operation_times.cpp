#include "launch/bench/operation_times.h"

#include <algorithm>
#include <chrono>

#include "launch/bench/forwarding_device.h"
#include "tensor/kernels.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class TimedOperations final : public Kernels {
 public:
  TimedOperations(Device& inner, OperationTimes& times) : inner_(inner), times_(times) {}

#define REDSPINE_RUN(Operation) \
  void run(const Operation& op) const override { time(op); }
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN

 private:
  template <class Op>
  void time(const Op& op) const {
    const auto start = Clock::now();
    inner_.kernels().run(op);
    inner_.synchronize(Stream::compute);
    times_.add(cost_of(op), seconds_since(start));
  }

  Device& inner_;
  OperationTimes& times_;
};

class TimedDevice final : public ForwardingDevice {
 public:
  TimedDevice(Device& inner, OperationTimes& times)
      : ForwardingDevice(inner), times_(times), kernels_(inner, times) {}

  const Kernels& kernels() const override { return kernels_; }

  void upload(TensorView to, ConstTensorView from_host) override {
    time(cost_of_copy(to.bytes()), [&] { ForwardingDevice::upload(to, from_host); });
  }
  void copy(TensorView to, ConstTensorView from) override {
    time(cost_of_copy(to.bytes()), [&] { ForwardingDevice::copy(to, from); });
  }
  void zero(TensorView view) override {
    time(cost_of_fill(view.bytes()), [&] { ForwardingDevice::zero(view); });
  }
  void order(Stream first, Stream then) override {
    wait([&] { ForwardingDevice::order(first, then); });
  }
  void synchronize(Stream stream) override {
    wait([&] { ForwardingDevice::synchronize(stream); });
  }

 private:
  template <class Action>
  void time(const OperationCost& operation, const Action& action) {
    const auto start = Clock::now();
    action();
    inner().synchronize(Stream::compute);
    times_.add(operation, seconds_since(start));
  }
  template <class Action>
  void wait(const Action& action) {
    const auto start = Clock::now();
    action();
    times_.add_wait(seconds_since(start));
  }

  OperationTimes& times_;
  TimedOperations kernels_;
};

}  // namespace

std::unique_ptr<Device> OperationTimes::timed(Device& inner) {
  return std::make_unique<TimedDevice>(inner, *this);
}

void OperationTimes::add(const OperationCost& operation, double seconds) {
  const Size size{operation.operation, operation.dtype, operation.rows,
                  operation.inner,     operation.cols,  operation.bytes};
  Times& times = times_.try_emplace(size, Times{operation, {}}).first->second;
  times.seconds.push_back(seconds);
}

void OperationTimes::clear() {
  times_.clear();
  wait_seconds_ = 0.0;
}

std::vector<OperationTimes::Median> OperationTimes::medians() const {
  std::vector<Median> medians;
  for (const auto& [size, times] : times_) {
    std::vector<double> seconds = times.seconds;
    std::ranges::sort(seconds);
    medians.push_back({times.operation, seconds[seconds.size() / 2]});
  }
  return medians;
}

double OperationTimes::sum() const {
  double sum = wait_seconds_;
  for (const auto& [size, times] : times_) {
    for (const double seconds : times.seconds) sum += seconds;
  }
  return sum;
}

}  // namespace redspine
