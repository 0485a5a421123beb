#include "launch/bench/machine.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "launch/bench/gemm.h"
#include "launch/bench/memory.h"
#include "launch/bench/operation_times.h"

namespace redspine {
namespace {

constexpr std::int64_t kNumWarmUpSteps = 2;
constexpr double kGib = 1 << 30;

// Widths whose products stand for those between them.
constexpr std::int64_t kWidths[] = {256, 512, 768, 1024};
constexpr std::int64_t kMicroBatches[] = {1, 4};

struct StepMeasurement {
  std::vector<OperationTimes::Median> operations;
  double rest_seconds;  // of a step, beside operations and waits
};

StepMeasurement measure(const Config& config, RunData& data, std::int64_t num_steps,
                        const ProcessGroup& world, Device& device) {
  OperationTimes times;
  const auto timed = times.timed(device);
  Trainer trainer(config, data, world, *timed);
  for (std::int64_t step = 0; step < kNumWarmUpSteps; ++step) trainer.train_step();
  times.clear();
  std::vector<double> rests;
  double before = 0.0;
  for (std::int64_t step = 0; step < num_steps; ++step) {
    const double seconds = trainer.train_step().seconds;
    const double sum = times.sum();
    rests.push_back(seconds - (sum - before));
    before = sum;
  }
  std::ranges::sort(rests);
  return {times.medians(), std::max(rests[rests.size() / 2], 0.0)};
}

// A model of two layers of another width, on the same data; none where it does not fit the ranks.
std::optional<Config> of_width(Config config, std::int64_t width, std::int64_t micro_batch,
                               int world_size) {
  constexpr std::int64_t kHeadSize = 64;
  config.model.hidden_size = width;
  config.model.num_heads = width / kHeadSize;
  config.model.num_kv_heads = config.model.num_heads;
  config.model.ffn_size = default_ffn_size(config.model.family, width);
  config.model.num_layers = 2;
  config.batch.micro_batch_size = micro_batch;
  config.batch.global_batch_size = micro_batch * config.num_data_ranks(world_size);
  ConfigProblems problems;
  config.validate(problems, world_size);
  if (!problems.empty()) return std::nullopt;
  return config;
}

MachineRate rate_of(const OperationTimes::Median& median) {
  const OperationCost& operation = median.operation;
  MachineRate rate{.operation = std::string(operation.operation),
                   .precision = operation.dtype == DType::bf16 ? Precision::bf16 : Precision::fp32};
  if (operation.cost_class == CostClass::memory) {
    rate.bytes = operation.bytes;
    rate.gigabytes_per_second = 1e-9 * operation.bytes / median.seconds;
    return rate;
  }
  rate.rows = operation.rows;
  rate.inner = operation.inner;
  rate.cols = operation.cols;
  rate.gigaflops = 1e-9 * operation.flops / median.seconds;
  return rate;
}

void add_rates(Machine& machine, const StepMeasurement& measured) {
  for (const OperationTimes::Median& median : measured.operations) {
    if (median.operation.bytes <= 0.0 || median.seconds <= 0.0) continue;
    const MachineRate rate = rate_of(median);
    const auto is_same = [&rate](const MachineRate& other) {
      return std::tie(rate.operation, rate.precision, rate.rows, rate.inner, rate.cols,
                      rate.bytes) == std::tie(other.operation, other.precision, other.rows,
                                              other.inner, other.cols, other.bytes);
    };
    if (std::ranges::none_of(machine.rates, is_same)) machine.rates.push_back(rate);
  }
}

// All ranks along one axis, of a node each or all of one node.
std::vector<CollectiveTime> measure_between(const ProcessGroup& world, Device& device,
                                            CollectiveBackend collectives, int tensor_size,
                                            std::int64_t most_bytes) {
  const ProcessMesh mesh(world, MeshShape::of(world.size(), tensor_size), device, collectives);
  return measure_collectives(mesh, device, most_bytes);
}

MachineLink link_of(const std::vector<CollectiveTime>& times, Axis axis, int size) {
  const auto is_along = [axis](const CollectiveTime& time) { return time.axis == axis; };
  const auto first = std::ranges::find_if(times, is_along);
  const auto last = std::find_if(times.rbegin(), times.rend(), is_along);
  const double sent = 2.0 * (size - 1) / size * static_cast<double>(last->bytes);
  return {.latency_seconds = first->seconds / 2.0,
          .gigabytes_per_second = 1e-9 * sent / last->seconds};
}

void measure_links(Machine& machine, const MachineBench& bench, const ProcessGroup& world,
                   Device& device, double copy_rate) {
  const auto per_node = static_cast<int>(machine.ranks_per_node);
  const int num_nodes = world.size() / per_node;
  machine.inside = {.latency_seconds = 1e-6, .gigabytes_per_second = 0.5e-9 * copy_rate};
  machine.between = machine.inside;
  if (world.size() == 1) return;
  const std::vector<CollectiveTime> times =
      measure_between(world, device, bench.config.run.collectives, per_node, bench.most_bytes);
  if (per_node > 1) machine.inside = link_of(times, Axis::tensor, per_node);
  machine.between = num_nodes > 1 ? link_of(times, Axis::data, num_nodes) : machine.inside;
  for (const CollectiveTime& time : times) {
    if (time.axis != Axis::tensor) continue;
    machine.all_reduces.push_back(
        {.ranks = per_node, .bytes = time.bytes, .seconds = time.seconds});
  }
}

// Ranks of a host, which every host has to have equally many of.
std::int64_t ranks_per_node(const ProcessGroup& world) {
  const std::vector<std::string> hosts = world.all_gather(ProcessGroup::host_name());
  return std::ranges::count(hosts, hosts.front());
}

}  // namespace

double host_memory_gib() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGE_SIZE)) / kGib;
}

Machine measure_machine(const MachineBench& bench, const ProcessGroup& world, Device& device) {
  const DType dtype = dtype_of(bench.config.run.precision);
  const bool is_cpu = device.kind() == DeviceKind::cpu;
  Machine machine;
  machine.name = bench.name;
  machine.device = is_cpu ? DeviceChoice::cpu : DeviceChoice::cuda;
  machine.ranks_per_node = ranks_per_node(world);
  machine.memory_gib = bench.memory_gib;
  // Threads that communicate take their time of the cores that compute.
  machine.overlap = is_cpu ? 0.0 : 1.0;
  const StreamRates streams = measure_streams(device);
  machine.memory_gigabytes_per_second = 1e-9 * streams.copy;
  const Product square = square_product(bench.square_size);
  machine.fp32_tflops = 1e-12 * measure(square, device, DType::f32).flops_per_second;
  if (dtype == DType::bf16) {
    machine.bf16_tflops = 1e-12 * measure(square, device, dtype).flops_per_second;
  }
  measure_links(machine, bench, world, device, streams.copy);
  const StepMeasurement as_it_is =
      measure(bench.config, bench.data, bench.num_steps, world, device);
  machine.step_seconds = as_it_is.rest_seconds;
  add_rates(machine, as_it_is);
  for (const std::int64_t width : kWidths) {
    for (const std::int64_t micro_batch : kMicroBatches) {
      const auto config = of_width(bench.config, width, micro_batch, world.size());
      if (config) add_rates(machine, measure(*config, bench.data, bench.num_steps, world, device));
    }
  }
  return machine;
}

}  // namespace redspine
