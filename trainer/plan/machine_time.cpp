#include "trainer/plan/machine_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tensor/error.h"

namespace redspine {
namespace {

Precision precision_of(DType dtype) {
  return dtype == DType::bf16 ? Precision::bf16 : Precision::fp32;
}

// Rates of sizes between those that were measured: of the nearest few on logarithmic axes, each the
// more the nearer it is (Shepard's interpolation).
constexpr std::size_t kNumNearest = 4;

double distance(const MachineRate& rate, const OperationCost& operation) {
  const auto log_ratio = [](double a, double b) { return std::log2(a / b); };
  if (operation.cost_class == CostClass::memory) {
    return std::abs(log_ratio(rate.bytes, operation.bytes));
  }
  // Attention has work for each head by itself.
  const bool depends_on_rows = operation.cost_class == CostClass::product;
  const std::array<double, 3> ratios = {
      depends_on_rows
          ? log_ratio(static_cast<double>(rate.rows), static_cast<double>(operation.rows))
          : 0.0,
      log_ratio(static_cast<double>(rate.inner), static_cast<double>(operation.inner)),
      log_ratio(static_cast<double>(rate.cols), static_cast<double>(operation.cols))};
  return std::hypot(ratios[0], ratios[1], ratios[2]);
}

double rate_of(const MachineRate& rate) {
  return 1e9 * (rate.gigaflops > 0.0 ? rate.gigaflops : rate.gigabytes_per_second);
}

struct Near {
  double distance;
  double rate;
};

double interpolated(std::vector<Near> near) {
  std::ranges::sort(near, {}, &Near::distance);
  constexpr double kSameSize = 1e-3;
  if (near.front().distance < kSameSize) return near.front().rate;
  double weights = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < std::min(near.size(), kNumNearest); ++i) {
    const double weight = 1.0 / (near[i].distance * near[i].distance);
    weights += weight;
    sum += weight * near[i].rate;
  }
  return sum / weights;
}

std::vector<Near> near_rates(const Machine& machine, const OperationCost& operation,
                             std::string_view name) {
  std::vector<Near> near;
  for (const MachineRate& rate : machine.rates) {
    if (rate.operation != name || rate.precision != precision_of(operation.dtype)) continue;
    near.push_back({distance(rate, operation), rate_of(rate)});
  }
  return near;
}

// Of a tree over so many.
double rounds_over(int count) {
  return std::bit_width(static_cast<unsigned>(std::max(count - 1, 0)));
}

// Of what a rank has to send of an all-reduce between so many.
double ring_share(int size) { return 2.0 * (size - 1) / size; }

}  // namespace

MachineTime::MachineTime(const Machine& machine, const MeshShape& shape) : machine_(machine) {
  for (std::size_t axis = 0; axis < kNumAxes; ++axis) groups_[axis] = group_of(shape, kAxes[axis]);
  world_.size = shape.num_ranks();
  world_.per_node = std::min(world_.size, static_cast<int>(machine.ranks_per_node));
  world_.num_nodes = (world_.size + world_.per_node - 1) / world_.per_node;
}

MachineTime::Group MachineTime::group_of(const MeshShape& shape, Axis axis) const {
  Group group{.size = shape.size(axis), .per_node = 0, .num_nodes = 0};
  MeshShape::Coordinates at{};
  const auto number = std::ranges::find(kAxes, axis) - kAxes.begin();
  for (int i = 0; i < group.size; ++i) {
    at[static_cast<std::size_t>(number)] = i;
    if (shape.rank_at(at) < machine_.ranks_per_node) ++group.per_node;
  }
  group.num_nodes = (group.size + group.per_node - 1) / group.per_node;
  return group;
}

double MachineTime::rate_of(const OperationCost& operation) const {
  std::vector<Near> near = near_rates(machine_, operation, operation.operation);
  if (!near.empty()) return interpolated(std::move(near));
  switch (operation.cost_class) {
    case CostClass::memory:
      return 1e9 * machine_.memory_gigabytes_per_second;
    case CostClass::product:
      near = near_rates(machine_, operation, "product");
      break;
    case CostClass::attention:
      break;
  }
  if (!near.empty()) return interpolated(std::move(near));
  throw ConfigError("rates",
                    fmt::format("of {} have none of {} in {}; legal: at least one", machine_.name,
                                operation.operation, word_of(precision_of(operation.dtype))));
}

double MachineTime::seconds(const OperationCost& operation) {
  const double work = operation.cost_class == CostClass::memory ? operation.bytes : operation.flops;
  if (work == 0.0) return 0.0;
  const Size size{operation.operation, operation.dtype, operation.rows,
                  operation.inner,     operation.cols,  operation.bytes};
  const auto [known, is_new] = known_.try_emplace(size, 0.0);
  if (is_new) known->second = machine_.operation_seconds + work / rate_of(operation);
  return known->second;
}

double MachineTime::measured_seconds(int size, double bytes) const {
  // Of the number of ranks nearest to this one; what a rank sends grows with it.
  const auto& all = machine_.all_reduces;
  const auto gap = [size](const MachineAllReduce& each) { return std::abs(each.ranks - size); };
  const std::int64_t ranks = std::ranges::min(all, {}, gap).ranks;
  std::vector<MachineAllReduce> points;
  std::ranges::copy_if(all, std::back_inserter(points),
                       [ranks](const MachineAllReduce& each) { return each.ranks == ranks; });
  std::ranges::sort(points, {}, &MachineAllReduce::bytes);
  const double factor = ring_share(size) / ring_share(static_cast<int>(ranks));
  const auto above = std::ranges::find_if(points, [bytes](const MachineAllReduce& each) {
    return static_cast<double>(each.bytes) >= bytes;
  });
  if (above == points.begin()) return factor * above->seconds;
  const MachineAllReduce& below = *std::prev(above);
  if (above == points.end()) {
    return factor * below.seconds * bytes / static_cast<double>(below.bytes);
  }
  const double share =
      (bytes - static_cast<double>(below.bytes)) / static_cast<double>(above->bytes - below.bytes);
  return factor * (below.seconds + share * (above->seconds - below.seconds));
}

// The ranks of a node divide among them what goes to other nodes; both ways are busy at once.
double MachineTime::all_reduce_seconds(const Group& group, double bytes) const {
  if (group.num_nodes == 1 && !machine_.all_reduces.empty()) {
    return measured_seconds(group.size, bytes);
  }
  const double inside =
      ring_share(group.per_node) * bytes / (1e9 * machine_.inside.gigabytes_per_second);
  const double between = ring_share(group.num_nodes) * bytes /
                         (1e9 * group.per_node * machine_.between.gigabytes_per_second);
  const double latency = 2.0 * (rounds_over(group.per_node) * machine_.inside.latency_seconds +
                                rounds_over(group.num_nodes) * machine_.between.latency_seconds);
  return latency + std::max(inside, between);
}

double MachineTime::seconds(const CollectiveCall& call) const {
  const auto axis = std::ranges::find(kAxes, call.axis) - kAxes.begin();
  const double all_reduce = all_reduce_seconds(groups_[static_cast<std::size_t>(axis)],
                                               static_cast<double>(call.bytes()));
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return all_reduce / 2.0;
  }
  __builtin_unreachable();
}

double MachineTime::host_sum_seconds() const {
  return 2.0 * (rounds_over(world_.per_node) * machine_.inside.latency_seconds +
                rounds_over(world_.num_nodes) * machine_.between.latency_seconds);
}

}  // namespace redspine
