#include "trainer/plan/step_time.h"

#include <array>
#include <variant>

namespace redspine {
namespace {

// Loss with the requests of all ranks over the data axis, norm over the tensor axis, digests.
constexpr double kNumHostSums = 3.0;

class Clocks {
 public:
  Clocks(const Machine& machine, MachineTime& times) : machine_(machine), times_(times) {}

  /// What a part adds to each kind of time, once.
  StepTime run(const StepTrace& part, bool is_update) {
    StepTime added;
    for (const StepEvent& event : part) {
      if (const auto* operation = std::get_if<OperationCost>(&event)) {
        compute(*operation, is_update, added);
      } else if (const auto* call = std::get_if<CollectiveCall>(&event)) {
        communicate(*call, added);
      } else if (const auto* order = std::get_if<StreamOrder>(&event)) {
        wait(order->first, order->then, added);
      } else {
        wait(std::get<HostWait>(event).stream, Stream::compute, added);
      }
    }
    return added;
  }

 private:
  double& clock(Stream stream) { return clocks_[static_cast<std::size_t>(stream)]; }

  static double& waits_of(Stream stream, StepTime& time) {
    return stream == Stream::gradients ? time.data_waits : time.tensor_waits;
  }

  void compute(const OperationCost& operation, bool is_update, StepTime& added) {
    const double seconds = times_.seconds(operation);
    clock(Stream::compute) += seconds;
    if (is_update) {
      added.update += seconds;
      return;
    }
    switch (operation.cost_class) {
      case CostClass::product:
        added.products += seconds;
        return;
      case CostClass::attention:
        added.attention += seconds;
        return;
      case CostClass::memory:
        added.memory += seconds;
        return;
    }
  }

  void communicate(const CollectiveCall& call, StepTime& added) {
    const double seconds = times_.seconds(call);
    clock(call.stream) += seconds;
    // What it takes of the processors that compute.
    const double taken = (1.0 - machine_.overlap) * seconds;
    if (call.stream == Stream::compute) return;
    clock(Stream::compute) += taken;
    waits_of(call.stream, added) += taken;
  }

  void wait(Stream first, Stream then, StepTime& added) {
    const double late = clock(first) - clock(then);
    if (late <= 0.0) return;
    clock(then) = clock(first);
    if (then == Stream::compute) waits_of(first, added) += late;
  }

  const Machine& machine_;
  MachineTime& times_;
  std::array<double, kNumStreams> clocks_{};
};

void add(StepTime& sum, const StepTime& more, double times) {
  for (const auto member : {&StepTime::products, &StepTime::attention, &StepTime::memory,
                            &StepTime::update, &StepTime::tensor_waits, &StepTime::data_waits}) {
    sum.*member += times * more.*member;
  }
}

}  // namespace

StepTime time_of(const StepTraces& step, const Machine& machine, const MeshShape& shape) {
  MachineTime times(machine, shape);
  Clocks clocks(machine, times);
  StepTime sum;
  step.for_each_part([&](const StepTrace& part, std::int64_t count) {
    add(sum, clocks.run(part, &part == &step.update), static_cast<double>(count));
  });
  sum.host = machine.step_seconds;
  if (shape.num_ranks() > 1) sum.host += kNumHostSums * times.host_sum_seconds();
  return sum;
}

}  // namespace redspine
