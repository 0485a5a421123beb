// How long each operation of a step takes by itself, as its device computes it. Local.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tensor/device.h"
#include "trainer/plan/operation_cost.h"

namespace redspine {

class OperationTimes {
 public:
  /// A device that leaves all to `inner` and adds to these times. Both outlive it.
  std::unique_ptr<Device> timed(Device& inner);

  void add(const OperationCost& operation, double seconds);
  /// Of waiting for other streams, which the times of operations do not have.
  void add_wait(double seconds) { wait_seconds_ += seconds; }
  /// From here on times count; what was before has warmed up.
  void clear();

  struct Median {
    OperationCost operation;
    double seconds;
  };
  /// Of each operation and size.
  std::vector<Median> medians() const;
  /// Of all operations and waits.
  double sum() const;

 private:
  using Size =
      std::tuple<std::string_view, DType, std::int64_t, std::int64_t, std::int64_t, double>;
  struct Times {
    OperationCost operation;
    std::vector<double> seconds;
  };

  std::map<Size, Times> times_;
  double wait_seconds_ = 0.0;
};

}  // namespace redspine
