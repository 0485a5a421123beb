#include "trainer/plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "trainer/plan/planned_rank.h"

namespace redspine {
namespace {

constexpr std::array kClasses = {&MemoryPlan::parameters, &MemoryPlan::gradients,
                                 &MemoryPlan::optimizer,  &MemoryPlan::saved,
                                 &MemoryPlan::scratch,    &MemoryPlan::logits,
                                 &MemoryPlan::library,    &MemoryPlan::communication,
                                 &MemoryPlan::snapshot,   &MemoryPlan::spot_check};

}  // namespace

MemoryPlan most_of(const MemoryPlan& a, const MemoryPlan& b) {
  MemoryPlan most;
  for (const auto member : kClasses) most.*member = std::max(a.*member, b.*member);
  return most;
}

MemoryPlan plan_memory(const Config& config, const ProcessGroup& world, DeviceKind kind) {
  MemoryPlan plan = PlannedRank(config, world, kind).memory();
  std::array<double, kClasses.size()> most{};
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    most[i] = static_cast<double>(plan.*kClasses[i]);
  }
  world.all_reduce(most, ReduceOp::max);
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    plan.*kClasses[i] = static_cast<std::int64_t>(most[i]);
  }
  return plan;
}

// Ranks differ in their shares, of which the first ones along the tensor axis are the largest, in
// which key and value heads they share with their neighbours, which repeats along it, and in which
// moments they have. Few are all looked at.
MemoryPlan plan_memory(const Config& config, int num_ranks, DeviceKind kind) {
  constexpr int kFew = 16;
  MemoryPlan most;
  const auto add = [&](int rank) {
    const ProcessGroup world = ProcessGroup::imagined(rank, num_ranks);
    PlannedRank planned(config, world, kind);
    most = most_of(most, planned.memory());
    return planned.data_rank_with_most_moments();
  };
  if (num_ranks <= kFew) {
    for (int rank = 0; rank < num_ranks; ++rank) add(rank);
    return most;
  }
  const MeshShape shape = config.parallel.mesh(num_ranks);
  const int num_tensor = shape.size(Axis::tensor);
  for (const int tensor_rank : std::set<int>{0, num_tensor / 2, num_tensor - 1}) {
    add(shape.rank_at({add(shape.rank_at({0, tensor_rank})), tensor_rank}));
  }
  return most;
}

std::string to_string(const MemoryPlan& plan) {
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string text = fmt::format(
      "memory: {:.1f} MiB per rank = parameters {:.1f} + gradients {:.1f} + optimizer {:.1f} + "
      "saved activations {:.1f} + scratch {:.1f} + logits {:.1f}",
      mib(plan.total()), mib(plan.parameters), mib(plan.gradients), mib(plan.optimizer),
      mib(plan.saved), mib(plan.scratch), mib(plan.logits));
  if (plan.communication > 0)
    text += fmt::format(" + communication {:.1f}", mib(plan.communication));
  if (plan.spot_check > 0) text += fmt::format(" + spot check {:.1f}", mib(plan.spot_check));
  if (plan.library > 0) text += fmt::format("; libraries {:.1f}", mib(plan.library));
  if (plan.snapshot > 0) text += fmt::format("; copy for saving {:.1f}", mib(plan.snapshot));
  return text;
}

}  // namespace redspine
