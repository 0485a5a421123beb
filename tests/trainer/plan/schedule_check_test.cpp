#include "trainer/plan/schedule_check.h"

#include <gtest/gtest.h>

#include "tensor/error.h"
#include "trainer/plan/planned_rank.h"

namespace redspine::testing {
namespace {

Config small_config(std::int64_t tensor) {
  Config config;
  config.model.num_layers = 3;
  config.model.hidden_size = 64;
  config.model.num_heads = 16;
  config.model.num_kv_heads = 16;
  config.model.ffn_size = 256;
  config.model.vocab_size = 257;
  config.model.max_sequence_length = 32;
  config.batch = {.sequence_length = 32, .global_batch_size = 2048, .micro_batch_size = 2};
  config.parallel.tensor = tensor;
  return config;
}

std::vector<StepTraces> steps_of_all_ranks(const Config& config, int num_ranks, DeviceKind kind) {
  std::vector<StepTraces> steps;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const ProcessGroup world = ProcessGroup::imagined(rank, num_ranks);
    steps.push_back(PlannedRank(config, world, kind).record_step());
  }
  return steps;
}

std::vector<StepTrace> schedules(const Config& config, int num_ranks,
                                 DeviceKind kind = DeviceKind::cuda) {
  std::vector<StepTrace> traces;
  for (const StepTraces& step : steps_of_all_ranks(config, num_ranks, kind)) {
    traces.push_back(communication_of(step));
  }
  return traces;
}

std::string problem_of(const MeshShape& shape, const std::vector<StepTrace>& traces) {
  try {
    check_schedule(shape, traces);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void erase_call(StepTrace& trace, std::size_t number) {
  for (auto event = trace.begin(); event != trace.end(); ++event) {
    if (!std::holds_alternative<CollectiveCall>(*event) || number-- > 0) continue;
    trace.erase(event);
    return;
  }
}

TEST(ScheduleCheck, FindsNothingAmissOn1024Ranks) {
  for (const int tensor : {8, 1, 16}) {
    Config config = small_config(tensor);
    if (tensor == 8) config.parallel.optimizer = OptimizerPlacement::sharded;
    const MeshShape shape = MeshShape::of(1024, tensor);
    EXPECT_EQ(problem_of(shape, schedules(config, 1024)), "") << tensor;
  }
}

TEST(ScheduleCheck, FindsNothingAmissWithAllOptions) {
  for (const Recompute recompute : {Recompute::none, Recompute::attention, Recompute::block}) {
    for (const std::int64_t micro_batch : {1, 8}) {
      Config config = small_config(4);
      config.model.num_kv_heads = 2;  // fewer than ranks, which share them
      config.model.dropout = 0.1;
      config.parallel.recompute = recompute;
      config.batch.global_batch_size = 64;
      config.batch.micro_batch_size = micro_batch;
      config.parallel.optimizer = OptimizerPlacement::sharded;
      config.parallel.sequence = true;
      EXPECT_EQ(problem_of(MeshShape::of(16, 4), schedules(config, 16)), "");
      config.parallel.sequence = false;
      config.parallel.optimizer = OptimizerPlacement::replicated;
      EXPECT_EQ(problem_of(MeshShape::of(16, 4), schedules(config, 16)), "");
      config.run.exact = true;
      config.run.exact_leaves = 4;
      config.run.exact_lanes = 4;
      EXPECT_EQ(problem_of(MeshShape::of(16, 4), schedules(config, 16, DeviceKind::cpu)), "");
    }
  }
}

TEST(ScheduleCheck, BytesAreThoseOfTheLayout) {
  const Config config = small_config(4);
  const std::int64_t rows = std::int64_t{2} * 32;
  const std::int64_t num_micro_batches = 2048 / (64 * 2);
  for (const StepTraces& step : steps_of_all_ranks(config, 256, DeviceKind::cuda)) {
    const AxisTraffic traffic = traffic_of(step);
    EXPECT_EQ(traffic, traffic_of(communication_of(step)));
    // A sum of activations in each half of a block, forward and back, one of the embedding and one
    // of the head's input gradient; three numbers a row for the loss.
    EXPECT_EQ(traffic[1].bytes, 4 * rows * num_micro_batches * (4 * 3 * 64 + 2 * 64 + 3));
    // All gradients, with what fills up cache lines.
    EXPECT_EQ(traffic[0].num_calls, 3 + 2);
    EXPECT_GT(traffic[0].bytes, 4 * 3 * 12 * 64 * 64 / 4);
  }
}

TEST(ScheduleCheck, NamesTheCallThatARankDoesNotMake) {
  const MeshShape shape = MeshShape::of(8, 2);
  std::vector<StepTrace> traces = schedules(small_config(2), 8);
  erase_call(traces[5], 2);
  const std::string problem = problem_of(shape, traces);
  // The calls before it are alike, so that it shows with the first one of another size.
  EXPECT_EQ(problem.substr(0, problem.find(" (")),
            "call 7: rank 4 makes all-reduce of 4096 f32 along tensor on stream 1, rank 5 "
            "all-reduce of 64 f32 along tensor on stream 1");
}

TEST(ScheduleCheck, NamesTheLastCallThatARankDoesNotMake) {
  const MeshShape shape = MeshShape::of(4, 1);
  std::vector<StepTrace> traces = schedules(small_config(1), 4);
  erase_call(traces[2], 4);
  const std::string problem = problem_of(shape, traces);
  EXPECT_NE(problem.find("nothing goes on: rank 0 waits in all-reduce of "), std::string::npos)
      << problem;
  EXPECT_NE(problem.find("call 5, where 3 of 4 ranks have come"), std::string::npos) << problem;
}

CollectiveCall call_along(Axis axis, Stream stream) {
  return {.axis = axis,
          .kind = CollectiveKind::all_reduce,
          .op = ReduceOp::sum,
          .dtype = DType::f32,
          .count = 1,
          .shares_hash = 0,
          .stream = stream};
}

// As many bytes as the sum of gradients: half of an all-reduce each, the values in place of their
// gradients.
TEST(ScheduleCheck, AShardedOptimizerScattersSumsAndGathersWhatItUpdated) {
  Config config = small_config(1);
  const AxisTraffic whole = traffic_of(steps_of_all_ranks(config, 2, DeviceKind::cpu).front());
  config.parallel.optimizer = OptimizerPlacement::sharded;
  const std::vector<StepTraces> steps = steps_of_all_ranks(config, 2, DeviceKind::cpu);
  EXPECT_EQ(traffic_of(steps.front())[0].bytes, 2 * whole[0].bytes);
  for (const StepEvent& event : communication_of(steps.front())) {
    const auto* call = std::get_if<CollectiveCall>(&event);
    if (call == nullptr) continue;
    EXPECT_NE(call->kind, CollectiveKind::all_reduce);
    EXPECT_NE(call->shares_hash, 0U);
  }
}

// Four ranks that each wait for the next in a call which the next makes after its own.
TEST(ScheduleCheck, FindsRanksThatWaitForEachOther) {
  const CollectiveCall tensor = call_along(Axis::tensor, Stream::activations);
  const CollectiveCall data = call_along(Axis::data, Stream::gradients);
  const StepTrace tensor_first = {tensor, StreamOrder{Stream::activations, Stream::gradients},
                                  data};
  const StepTrace data_first = {data, StreamOrder{Stream::gradients, Stream::activations}, tensor};
  const MeshShape shape = MeshShape::of(4, 2);
  EXPECT_EQ(problem_of(shape, {tensor_first, data_first, data_first, tensor_first}).substr(0, 16),
            "nothing goes on:");
  EXPECT_EQ(problem_of(shape, {tensor_first, tensor_first, data_first, tensor_first}), "");
  EXPECT_EQ(problem_of(shape, {tensor_first, tensor_first, tensor_first, tensor_first}), "");
  const StepTrace host_waits = {tensor, HostWait{Stream::activations}, data};
  EXPECT_EQ(problem_of(shape, {host_waits, host_waits, tensor_first, tensor_first}), "");
  EXPECT_NE(problem_of(shape, {host_waits, data_first, data_first, host_waits}), "");
}

TEST(ScheduleCheck, NamesWhatDiffersInTheCallsOfPeers) {
  CollectiveCall call = call_along(Axis::tensor, Stream::activations);
  const StepTrace one = {call};
  call.count = 2;
  const std::string problem = problem_of(MeshShape::of(2, 2), {one, {call}});
  EXPECT_NE(problem.find("call 1: rank 0 makes all-reduce of 1 f32 along tensor on stream 1, rank "
                         "1 all-reduce of 2 f32 along tensor on stream 1"),
            std::string::npos)
      << problem;
}

}  // namespace
}  // namespace redspine::testing
