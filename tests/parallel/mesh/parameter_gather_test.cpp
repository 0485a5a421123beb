#include "parallel/mesh/parameter_gather.h"

#include <gtest/gtest.h>

#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kBucket = 10;
constexpr std::size_t kNumBuckets = 3;

// Three buckets of ten numbers, all ranks on the data axis.
class Gathered : public ::testing::Test {
 protected:
  std::vector<GatheredBucket> buckets() {
    std::vector<GatheredBucket> all;
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      all.push_back({.values = {bucket(b)}, .shares = partition(kBucket, world().size())});
    }
    return all;
  }
  TensorView bucket(std::size_t b) {
    return values.view().slice(static_cast<std::int64_t>(b) * kBucket, kBucket);
  }
  // As this rank's update leaves them: its share new, the others old.
  void update(float step) {
    const Range own = partition(kBucket, world().size(), world().rank());
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      for (std::int64_t i = own.begin; i < own.end; ++i) {
        bucket(b).data<float>()[i] = step + static_cast<float>(i);
      }
    }
  }
  std::vector<float> expected(float step) const {
    std::vector<float> all;
    for (std::int64_t i = 0; i < kBucket; ++i) all.push_back(step + static_cast<float>(i));
    return all;
  }

  std::unique_ptr<Device> device = make_cpu_device(1);
  ProcessMesh mesh{world(), MeshShape::of(world().size(), 1), *device};
  Tensor values{*device, DType::f32, {kBucket * static_cast<std::int64_t>(kNumBuckets)}};
};

TEST_F(Gathered, EachBucketIsThereOnceItIsAwaited) {
  ParameterGather gather(*device, mesh, buckets());
  for (const float step : {100.0F, 200.0F}) {
    update(step);
    gather.begin();
    for (std::size_t b = 0; b < kNumBuckets; ++b) {
      gather.await(b);
      gather.await(b);
      EXPECT_EQ(from_device(*device, bucket(b)), expected(step));
    }
  }
}

TEST_F(Gathered, ALaterBucketBringsThoseBeforeIt) {
  ParameterGather gather(*device, mesh, buckets());
  update(100.0F);
  gather.begin();
  gather.await(1);
  EXPECT_EQ(from_device(*device, bucket(0)), expected(100.0F));
  EXPECT_EQ(from_device(*device, bucket(1)), expected(100.0F));
  gather.finish();
  EXPECT_EQ(from_device(*device, bucket(2)), expected(100.0F));
}

TEST_F(Gathered, WhatIsLeftOfAStepIsThereBeforeTheNext) {
  ParameterGather gather(*device, mesh, buckets());
  update(100.0F);
  gather.begin();
  gather.begin();
  EXPECT_EQ(from_device(*device, bucket(2)), expected(100.0F));
}

TEST_F(Gathered, NothingIsWaitedForBeforeTheFirstStep) {
  update(7.0F);
  const std::vector<float> before = from_device(*device, values);
  ParameterGather gather(*device, mesh, buckets());
  gather.await(2);
  gather.finish();
  EXPECT_EQ(from_device(*device, values), before);
}

}  // namespace
}  // namespace redspine::testing
