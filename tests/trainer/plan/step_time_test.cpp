#include "trainer/plan/step_time.h"

#include <gtest/gtest.h>

#include "tensor/error.h"
#include "trainer/plan/run_plan.h"

namespace redspine::testing {
namespace {

// A product takes a second for each 10^9 operations, memory one for each 10^9 bytes.
Machine plain_machine() {
  Machine machine;
  machine.name = "plain";
  machine.device = DeviceChoice::cpu;
  machine.ranks_per_node = 4;
  machine.memory_gib = 1.0;
  machine.memory_gigabytes_per_second = 1.0;
  machine.fp32_tflops = 0.001;
  machine.inside.gigabytes_per_second = 1.0;
  machine.between.gigabytes_per_second = 0.5;
  machine.rates = {
      {.operation = "product", .rows = 1, .inner = 1, .cols = 1, .gigaflops = 1.0},
      {.operation = "Attention", .rows = 1, .inner = 1, .cols = 1, .gigaflops = 1.0},
      {.operation = "AttentionBackward", .rows = 1, .inner = 1, .cols = 1, .gigaflops = 1.0}};
  return machine;
}

OperationCost product(double seconds) {
  return {.operation = "Matmul",
          .cost_class = CostClass::product,
          .dtype = DType::f32,
          .rows = 1,
          .inner = 1,
          .cols = 1,
          .flops = 1e9 * seconds,
          .bytes = seconds};
}

// Of two ranks of a node it takes as many seconds as it has 10^9 bytes.
CollectiveCall all_reduce(Axis axis, Stream stream, double seconds) {
  return {.axis = axis,
          .kind = CollectiveKind::all_reduce,
          .op = ReduceOp::sum,
          .dtype = DType::f32,
          .count = static_cast<std::int64_t>(seconds * 1e9 / 4.0),
          .shares_hash = 0,
          .stream = stream};
}

StepTime time_of_trace(StepTrace trace, const Machine& machine, const MeshShape& shape) {
  StepTraces step;
  step.last = std::move(trace);
  return time_of(step, machine, shape);
}

TEST(StepTime, OfACollectiveBeneathWorkIsHidden) {
  const MeshShape shape = MeshShape::of(2, 1);
  const StepTrace trace = {product(1.0), StreamOrder{Stream::compute, Stream::gradients},
                           all_reduce(Axis::data, Stream::gradients, 2.0), product(3.0),
                           StreamOrder{Stream::gradients, Stream::compute}};
  const StepTime time = time_of_trace(trace, plain_machine(), shape);
  EXPECT_DOUBLE_EQ(time.products, 4.0);
  EXPECT_DOUBLE_EQ(time.data_waits, 0.0);
  EXPECT_DOUBLE_EQ(time.seconds(), 4.0);
}

TEST(StepTime, OfACollectiveThatTakesLongerIsWaitedFor) {
  const MeshShape shape = MeshShape::of(2, 2);
  const StepTrace trace = {product(1.0),
                           StreamOrder{Stream::compute, Stream::activations},
                           all_reduce(Axis::tensor, Stream::activations, 2.0),
                           product(0.5),
                           StreamOrder{Stream::activations, Stream::compute},
                           product(1.0)};
  const StepTime time = time_of_trace(trace, plain_machine(), shape);
  EXPECT_DOUBLE_EQ(time.tensor_waits, 1.5);
  EXPECT_DOUBLE_EQ(time.seconds(), 4.0);
}

TEST(StepTime, WithoutOverlapACollectiveTakesTheProcessorsThatCompute) {
  Machine machine = plain_machine();
  machine.overlap = 0.0;
  const StepTrace trace = {StreamOrder{Stream::compute, Stream::gradients},
                           all_reduce(Axis::data, Stream::gradients, 2.0), product(3.0),
                           StreamOrder{Stream::gradients, Stream::compute}};
  EXPECT_DOUBLE_EQ(time_of_trace(trace, machine, MeshShape::of(2, 1)).seconds(), 5.0);
}

TEST(StepTime, CountsMicroBatchesThatAreAlike) {
  StepTraces step;
  step.first = {product(1.0)};
  step.middle = {product(2.0)};
  step.last = {product(4.0)};
  step.update = {product(8.0)};
  step.num_micro_batches = 5;
  const StepTime time = time_of(step, plain_machine(), MeshShape::of(1, 1));
  EXPECT_DOUBLE_EQ(time.products, 1.0 + 3 * 2.0 + 4.0);
  EXPECT_DOUBLE_EQ(time.update, 8.0);
}

TEST(MachineTime, OfAnAllReduceIsOfBytesSentInsideAndBetweenNodes) {
  const Machine machine = plain_machine();
  const auto seconds = [&machine](int num_ranks, int tensor, Axis axis) {
    MachineTime times(machine, MeshShape::of(num_ranks, tensor));
    return times.seconds(all_reduce(axis, Stream::gradients, 1.0));
  };
  EXPECT_DOUBLE_EQ(seconds(2, 1, Axis::data), 1.0);
  EXPECT_DOUBLE_EQ(seconds(4, 1, Axis::data), 1.5);
  // Four nodes of four data ranks each, which share the links between nodes.
  EXPECT_DOUBLE_EQ(seconds(16, 1, Axis::data), 1.5);
  // Each rank alone on its node of those along the data axis.
  EXPECT_DOUBLE_EQ(seconds(16, 4, Axis::data), 2.0 * 1.5);
  EXPECT_DOUBLE_EQ(seconds(16, 4, Axis::tensor), 1.5);
}

TEST(MachineTime, OfAnAllReduceBetweenMeasuredSizesLiesBetween) {
  Machine machine = plain_machine();
  machine.all_reduces = {{.ranks = 2, .bytes = 1'000, .seconds = 1.0},
                         {.ranks = 2, .bytes = 3'000, .seconds = 2.0}};
  const MachineTime times(machine, MeshShape::of(2, 1));
  const auto seconds = [&times](double bytes) {
    return times.seconds(all_reduce(Axis::data, Stream::gradients, bytes * 1e-9));
  };
  EXPECT_DOUBLE_EQ(seconds(4), 1.0);
  EXPECT_DOUBLE_EQ(seconds(2'000), 1.5);
  EXPECT_DOUBLE_EQ(seconds(9'000), 6.0);
}

TEST(MachineTime, OfASizeThatWasMeasuredIsWhatWasMeasured) {
  Machine machine = plain_machine();
  const auto rate = [](std::int64_t rows, double gigaflops) {
    return MachineRate{
        .operation = "Matmul", .rows = rows, .inner = 64, .cols = 64, .gigaflops = gigaflops};
  };
  machine.rates = {rate(16, 1.0), rate(64, 3.0)};
  MachineTime times(machine, MeshShape::of(1, 1));
  const auto gigaflops = [&times](std::int64_t rows) {
    OperationCost operation = product(0.0);
    operation.rows = rows;
    operation.inner = 64;
    operation.cols = 64;
    operation.flops = 2.0 * 64 * 64 * static_cast<double>(rows);
    return 1e-9 * operation.flops / times.seconds(operation);
  };
  EXPECT_DOUBLE_EQ(gigaflops(16), 1.0);
  EXPECT_DOUBLE_EQ(gigaflops(64), 3.0);
  EXPECT_DOUBLE_EQ(gigaflops(32), 2.0);
  EXPECT_GT(gigaflops(40), gigaflops(30));
}

TEST(MachineTime, WithoutARateIsRefused) {
  Machine machine = plain_machine();
  machine.rates.front().precision = Precision::bf16;
  MachineTime times(machine, MeshShape::of(1, 1));
  EXPECT_THROW(times.seconds(product(1.0)), ConfigError);
}

Config small_config() {
  Config config;
  config.model.num_layers = 2;
  config.model.hidden_size = 64;
  config.model.num_heads = 4;
  config.model.num_kv_heads = 4;
  config.model.ffn_size = 256;
  config.model.vocab_size = 256;
  config.model.max_sequence_length = 32;
  config.batch = {.sequence_length = 32, .global_batch_size = 16, .micro_batch_size = 4};
  config.train.steps = 10;
  config.checkpoint.interval = 4;
  return config;
}

// 2 operations for each weight forward and 4 back, and as many for attention as its mask leaves.
TEST(RunPlan, HasAllProductsOfAStep) {
  const Config config = small_config();
  const Machine machine = plain_machine();
  const RunPlan plan = plan_run(config, 1, DeviceKind::cpu, &machine);
  const double rows = 16.0 * 32.0;
  const double weights = 2.0 * 12.0 * 64.0 * 64.0 + 256.0 * 64.0;
  EXPECT_NEAR(plan.time->step.products, 1e-9 * 6.0 * rows * weights, 1e-12);
  EXPECT_NEAR(plan.time->step.attention, 1e-9 * 7.0 * 2.0 * rows * 33.0 / 2.0 * 64.0 * 2.0, 1e-12);
  EXPECT_GT(plan.time->step.memory, 0.0);
  EXPECT_EQ(plan.time->step.tensor_waits + plan.time->step.data_waits + plan.time->step.host, 0.0);
  EXPECT_EQ(plan.num_checkpoints, 3);
  EXPECT_DOUBLE_EQ(plan.time->tokens_per_second, rows / plan.time->step.seconds());
  EXPECT_DOUBLE_EQ(plan.time->run_seconds, 10.0 * plan.time->step.seconds());
}

TEST(RunPlan, RecomputesEightOfTwelveForwardProductsOfAllBlocksButTheLast) {
  Config config = small_config();
  config.model.num_layers = 4;
  const Machine machine = plain_machine();
  const double none = plan_run(config, 1, DeviceKind::cpu, &machine).time->step.products;
  config.parallel.recompute = Recompute::block;
  const double block = plan_run(config, 1, DeviceKind::cpu, &machine).time->step.products;
  const double again = 1e-9 * 2.0 * 16.0 * 32.0 * 3.0 * 8.0 * 64.0 * 64.0;
  EXPECT_NEAR(block - none, again, 1e-12);
}

}  // namespace
}  // namespace redspine::testing
