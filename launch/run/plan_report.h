// What a run was planned to take, and at its end what it took. Local.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "trainer/plan/run_plan.h"
#include "trainer/report.h"

namespace redspine {

class PlanReport {
 public:
  /// Without a machine it plans and compares nothing. ConfigError where the machine is of another
  /// kind than `kind`.
  PlanReport(const Config& config, int num_ranks, DeviceKind kind, const MemoryPlan& memory,
             std::optional<Machine> machine);

  /// Time, before the first step; empty without a machine.
  const std::string& prediction() const { return prediction_; }
  void add(const StepReport& report) { step_seconds_.push_back(report.seconds); }
  /// Of this rank: time of a step and memory, planned and measured; empty without a machine.
  std::string comparison(const Device& device) const;

 private:
  std::int64_t planned_bytes_;
  std::optional<double> planned_seconds_;
  std::string prediction_;
  std::vector<double> step_seconds_;
};

/// The most memory that this process has had so far, as its system counts it.
std::int64_t peak_process_bytes();

}  // namespace redspine
