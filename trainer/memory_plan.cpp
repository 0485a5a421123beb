#include "trainer/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/gpt.h"
#include "parallel/mesh/gradient_reducer.h"
#include "tensor/error.h"
#include "trainer/batch_feed.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/spot_check.h"

namespace redspine {
namespace {

// Stands for a device of a kind: gives out an address with nothing behind it, and adds up what was
// asked for.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(DeviceKind kind) : kind_(kind) {}

  DeviceKind kind() const override { return kind_; }
  std::string description() const override { return "a device that counts"; }
  std::string bus_id() const override { return ""; }
  const Kernels& kernels() const override { throw Error("a device that counts has no kernels"); }

  void* allocate(std::size_t bytes) override {
    bytes_ += static_cast<std::int64_t>(bytes);
    return &address_;
  }
  void deallocate(void*) noexcept override {}
  std::int64_t used_bytes() const override { return bytes_; }
  void upload(TensorView, ConstTensorView) override {}
  void download(TensorView, ConstTensorView) override {}
  void copy(TensorView, ConstTensorView) override {}
  void zero(TensorView) override {}
  void read(TensorView, ConstTensorView) override {}
  void write(TensorView, ConstTensorView) override {}
  void* allocate_host(std::size_t) override { return nullptr; }
  void deallocate_host(void*) noexcept override {}
  void enqueue(Stream, std::function<void()>) override {}
  void order(Stream, Stream) override {}
  void synchronize(Stream) override {}

 private:
  DeviceKind kind_;
  std::int64_t bytes_ = 0;
  std::byte address_{};
};

}  // namespace

MemoryPlan plan_memory(const Config& config, const ProcessGroup& world, DeviceKind kind) {
  CountingDevice device(kind);
  // MPI's: there is no GPU for NCCL, and neither takes memory of the device that counts here.
  const ProcessMesh mesh(world, config.parallel.mesh(world.size()), device, CollectiveBackend::mpi);
  const MicroBatchShape shape{.num_sequences = config.batch.micro_batch_size,
                              .sequence_length = config.batch.sequence_length};
  const int num_buffers = config.run.exact ? LaneSums::of(static_cast<int>(config.run.exact_lanes),
                                                          mesh.group(Axis::data))
                                                 .num_buffers()
                                           : 1;
  Gpt model(config.model, shape, config.run.seed,
            {device, mesh, dtype_of(config.run.precision), config.num_leaves(),
             config.parallel.recompute, config.parallel.optimizer, config.parallel.sequence},
            InitialWeights::zero, num_buffers);
  ParameterStore& parameters = model.parameters();
  const GradientReducer reducer(device, mesh, parameters.buckets(), 1);
  const BatchFeed feed(device, shape);
  std::optional<SpotCheck> spot_check;
  if (config.run.spot_check_interval > 0) spot_check.emplace(config, model, mesh, device);
  const std::int64_t of_model = device.used_bytes();
  const Optimizer optimizer(config.optimizer, device, parameters,
                            held_parts(parameters, mesh.group(Axis::tensor)));
  const auto gradients = static_cast<std::int64_t>(parameters.gradients().bytes());
  const std::int64_t values = parameters.bytes() - gradients;
  const std::array<std::int64_t, 4> mine = {values, gradients, device.used_bytes() - of_model,
                                            of_model - values - gradients};
  std::array<double, 4> most{};
  std::copy(mine.begin(), mine.end(), most.begin());
  world.all_reduce(most, ReduceOp::max);
  return {.parameters = static_cast<std::int64_t>(most[0]),
          .gradients = static_cast<std::int64_t>(most[1]),
          .optimizer = static_cast<std::int64_t>(most[2]),
          .activations = static_cast<std::int64_t>(most[3])};
}

std::string to_string(const MemoryPlan& plan) {
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return fmt::format(
      "memory: {:.1f} MiB per rank = parameters {:.1f} + gradients {:.1f} + optimizer {:.1f} + "
      "activations {:.1f}",
      mib(plan.total()), mib(plan.parameters), mib(plan.gradients), mib(plan.optimizer),
      mib(plan.activations));
}

}  // namespace redspine
