#include "model/parameters.h"

#include <gtest/gtest.h>

namespace redspine {
namespace {

ParameterSpec whole_matrix(std::string name, std::int64_t rows, std::int64_t cols) {
  return sharded_parameter(std::move(name), {rows, cols}, 0, {0, rows});
}

/// Two buckets: a stack of two matrices and a vector, then a matrix.
class Store : public ::testing::Test {
 protected:
  Store() {
    store.begin_bucket();
    stack = &store.declare({whole_matrix("a", 2, 3), whole_matrix("b", 5, 3)});
    vector = &store.declare({replicated_parameter("c", {7}, 0)});
    store.begin_bucket();
    matrix = &store.declare({whole_matrix("d", 4, 4)});
    store.allocate(*device);
  }

  std::unique_ptr<Device> device = make_cpu_device(1);
  ParameterStore store;
  const ParameterStack* stack = nullptr;
  const ParameterStack* vector = nullptr;
  const ParameterStack* matrix = nullptr;
};

TEST_F(Store, ParametersOfAStackLieSideBySide) {
  const auto& parameters = store.parameters();
  EXPECT_EQ(stack->value.shape(), (Shape{7, 3}));
  EXPECT_EQ(stack->gradient.shape(), (Shape{7, 3}));
  EXPECT_EQ(stack->value.raw(), parameters[0].value.raw());
  EXPECT_EQ(parameters[1].value.data<float>(), parameters[0].value.data<float>() + 6);
  EXPECT_EQ(parameters[1].gradient.data<float>(), stack->gradient.data<float>() + 6);
  EXPECT_EQ(parameters[1].value.shape(), (Shape{5, 3}));
  EXPECT_EQ(vector->value.shape(), (Shape{7}));
}

TEST_F(Store, EveryStackStartsAtAMultipleOf64Bytes) {
  for (const ParameterStack* each : {stack, vector, matrix}) {
    for (const void* start : {each->value.raw(), each->gradient.raw()}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % 64, 0U);
    }
  }
}

TEST_F(Store, BucketsAreContiguousAndCoverTheFlatBuffer) {
  const std::vector<GradientBucket> buckets = store.buckets();
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].gradients.front().raw(), store.gradients().raw());
  EXPECT_EQ(buckets[1].gradients.front().raw(), matrix->gradient.raw());
  EXPECT_EQ(buckets[0].gradients.front().data<float>() + buckets[0].gradients.front().count(),
            buckets[1].gradients.front().data<float>());
  EXPECT_EQ(buckets[0].gradients.front().count() + buckets[1].gradients.front().count(),
            store.gradients().count());
  EXPECT_EQ(store.values().count(), store.gradients().count());
}

TEST_F(Store, OffsetsAreThoseOfTheFlatBuffers) {
  for (const Parameter& parameter : store.parameters()) {
    EXPECT_EQ(parameter.value.data<float>(), store.values().data<float>() + parameter.offset);
    EXPECT_EQ(parameter.gradient.data<float>(), store.gradients().data<float>() + parameter.offset);
  }
}

TEST_F(Store, StartsWithZeros) {
  for (const TensorView& view : {store.values(), store.gradients()}) {
    for (std::int64_t i = 0; i < view.count(); ++i) EXPECT_EQ(view.data<float>()[i], 0.0F);
  }
}

TEST_F(Store, MatricesDecayAndVectorsDoNot) {
  EXPECT_TRUE(store.parameters()[0].spec.decays());
  EXPECT_FALSE(store.parameters()[2].spec.decays());
}

TEST(ParameterSpec, ReplicatedOnesAreCountedByTheFirstTensorRank) {
  EXPECT_EQ(replicated_parameter("x", {9}, 0).owned, (Range{0, 9}));
  EXPECT_EQ(replicated_parameter("x", {9}, 1).owned.size(), 0);
  EXPECT_EQ(replicated_parameter("x", {9}, 1).local, (Range{0, 9}));
}

TEST(ParameterSpec, LocalShapesFollowTheShardedDim) {
  EXPECT_EQ(sharded_parameter("x", {8, 6}, 0, {2, 5}).local_shape(), (Shape{3, 6}));
  EXPECT_EQ(sharded_parameter("x", {8, 6}, 1, {2, 5}).local_shape(), (Shape{8, 3}));
}

TEST(ParameterStore, CountsTheOwnedRowsOfASharedParameter) {
  const auto device = make_cpu_device(1);
  ParameterStore store;
  store.begin_bucket();
  store.declare({{.name = "key",
                  .global_shape = {8, 2},
                  .sharded_dim = 0,
                  .local = {2, 6},
                  .owned = {4, 6},
                  .local_gradient = LocalGradient::partial}});
  store.declare({replicated_parameter("norm", {3}, 1)});
  store.allocate(*device);
  const std::vector<ConstTensorView> owned = store.owned_gradients();
  ASSERT_EQ(owned.size(), 2U);
  EXPECT_EQ(owned[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(owned[0].data<float>(), store.parameters()[0].gradient.data<float>() + 4);
  EXPECT_EQ(owned[1].count(), 0);

  const std::vector<GradientBucket> buckets = store.buckets();
  ASSERT_EQ(buckets[0].shared.size(), 1U);
  EXPECT_EQ(buckets[0].shared[0].gradient.shape(), (Shape{4, 2}));
  EXPECT_EQ(buckets[0].shared[0].rows, (Range{2, 6}));
  EXPECT_EQ(buckets[0].shared[0].num_global_rows, 8);
}

TEST(ParameterStore, SharedRowsOfAVectorAreRowsOfOneColumn) {
  const auto device = make_cpu_device(1);
  ParameterStore store;
  store.begin_bucket();
  store.declare({{.name = "key.bias",
                  .global_shape = {8},
                  .sharded_dim = 0,
                  .local = {0, 4},
                  .owned = {0, 4},
                  .local_gradient = LocalGradient::partial}});
  store.allocate(*device);
  EXPECT_EQ(store.buckets()[0].shared[0].gradient.shape(), (Shape{4, 1}));
}

TEST(ParameterStore, AShareMayBeEmpty) {
  const auto device = make_cpu_device(1);
  ParameterStore store;
  store.begin_bucket();
  const ParameterStack& empty = store.declare({sharded_parameter("x", {2, 5}, 0, {2, 2})});
  store.allocate(*device);
  EXPECT_EQ(empty.value.count(), 0);
  EXPECT_EQ(store.owned_gradients()[0].count(), 0);
}

}  // namespace
}  // namespace redspine
