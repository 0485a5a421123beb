#include "parallel/mesh/gradient_reducer.h"

#include <gtest/gtest.h>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

using Floats = std::vector<float>;

std::vector<int> tensor_degrees() {
  std::vector<int> degrees;
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (MeshShape::fits(world().size(), tensor)) degrees.push_back(tensor);
  }
  return degrees;
}

void fill(const TensorView& view, float value) {
  std::fill_n(view.data<float>(), view.count(), value);
}

TEST(GradientReducer, AddsUpOverDataRanksAtTheLastMicroBatchOnly) {
  const auto device = make_cpu_device(1);
  for (const int tensor : tensor_degrees()) {
    const ProcessMesh mesh(world(), MeshShape::of(world().size(), tensor), *device);
    Tensor gradients(*device, DType::f32, {12});
    const TensorView first = gradients.view().slice(0, 8);
    const TensorView second = gradients.view().slice(8, 4);
    GradientReducer reducer(
        *device, mesh,
        {{.gradients = {first}, .shared = {}}, {.gradients = {second}, .shared = {}}}, 3);
    for (int step = 0; step < 2; ++step) {
      const auto mine = static_cast<float>(world().rank() + 1);
      fill(first, mine);
      fill(second, -mine);
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        reducer.ready(1);
        reducer.ready(0);
        device->synchronize(Stream::gradients);
        EXPECT_EQ(from_device(*device, gradients)[0], mine) << "after micro-batch " << micro_batch;
        EXPECT_EQ(from_device(*device, gradients)[8], -mine);
      }
      reducer.ready(1);
      reducer.ready(0);
      reducer.finish();
      const auto sum = static_cast<float>(
          mesh.group(Axis::data).all_reduce(static_cast<double>(mine), ReduceOp::sum));
      EXPECT_EQ(from_device(*device, first), Floats(8, sum)) << "step " << step;
      EXPECT_EQ(from_device(*device, second), Floats(4, -sum)) << "step " << step;
    }
  }
}

TEST(GradientReducer, ABucketIsAddedUpWhileOthersAreNotYetReady) {
  const auto device = make_cpu_device(1);
  const ProcessMesh mesh(world(), MeshShape::of(world().size(), 1), *device);
  Tensor gradients(*device, DType::f32, {2});
  GradientReducer reducer(*device, mesh,
                          {{.gradients = {gradients.view().slice(0, 1)}, .shared = {}},
                           {.gradients = {gradients.view().slice(1, 1)}, .shared = {}}},
                          1);
  fill(gradients, 1.0F);
  reducer.ready(1);
  device->synchronize(Stream::gradients);
  EXPECT_EQ(from_device(*device, gradients), (Floats{1.0F, static_cast<float>(world().size())}));
  reducer.ready(0);
  reducer.finish();
  EXPECT_EQ(from_device(*device, gradients), Floats(2, static_cast<float>(world().size())));
}

// Tensor rank t holds rows t and t + 1 of tp + 1 rows, as with heads that two ranks read: row r is
// the sum over the ranks that hold it, and over the data ranks of each.
TEST(GradientReducer, AddsUpSharedRowsOverTheTensorAxis) {
  const auto device = make_cpu_device(1);
  constexpr std::int64_t kCols = 3;
  for (const int tensor : tensor_degrees()) {
    const ProcessMesh mesh(world(), MeshShape::of(world().size(), tensor), *device);
    const int num_data = mesh.group(Axis::data).size();
    const int rank = mesh.group(Axis::tensor).rank();
    Tensor gradients(*device, DType::f32, {4 * kCols});
    const TensorView alone = gradients.view().slice(0, 2 * kCols);
    const TensorView shared = gradients.view().slice(2 * kCols, 2 * kCols).reshape({2, kCols});
    GradientReducer reducer(*device, mesh,
                            {{.gradients = {gradients},
                              .shared = {{.gradient = shared,
                                          .rows = {rank, rank + 2},
                                          .num_global_rows = tensor + 1}}}},
                            2);
    const auto value_of = [](int tensor_rank, int row) {
      return static_cast<float>(10 * tensor_rank + row + 1);
    };
    for (int step = 0; step < 2; ++step) {
      fill(alone, 1.0F);
      fill(shared.slice(0, 1), value_of(rank, 0));
      fill(shared.slice(1, 1), value_of(rank, 1));
      reducer.ready(0);
      EXPECT_EQ(from_device(*device, shared)[0], value_of(rank, 0))
          << "before the last micro-batch";
      reducer.ready(0);
      reducer.finish();

      const auto times = static_cast<float>(num_data);
      EXPECT_EQ(from_device(*device, alone), Floats(2 * kCols, times)) << "rows of this rank alone";
      float above = value_of(rank, 0);
      if (rank > 0) above += value_of(rank - 1, 1);
      float below = value_of(rank, 1);
      if (rank + 1 < tensor) below += value_of(rank + 1, 0);
      EXPECT_EQ(from_device(*device, shared.slice(0, 1)), Floats(kCols, times * above));
      EXPECT_EQ(from_device(*device, shared.slice(1, 1)), Floats(kCols, times * below));
    }
  }
}

}  // namespace
}  // namespace redspine::testing
