#include "trainer/checkpoint/save_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/model_spec.h"

namespace redspine {
namespace {

std::vector<StoredTensor> gpt2_small() { return stored_tensors(ModelConfig{}); }

TEST(SavePlan, EachTensorOfEachPartHasOneWriter) {
  const auto tensors = gpt2_small();
  const SavePlan plan(tensors, 4);
  std::set<std::string> names;
  for (const PlannedTensor& planned : plan.tensors()) {
    EXPECT_TRUE(names.insert(planned.name()).second) << planned.name();
    EXPECT_GE(planned.writer, 0);
    EXPECT_LT(planned.writer, 4);
  }
  EXPECT_EQ(names.size(), 3 * tensors.size());
  EXPECT_TRUE(names.contains("exp_avg_sq.transformer.wte.weight"));
  EXPECT_EQ(plan.total_bytes(), 12 * num_parameters(ModelConfig{}));
}

TEST(SavePlan, AllRanksWriteAboutEquallyManyBytes) {
  const auto tensors = gpt2_small();
  for (const int num_ranks : {2, 3, 4, 8}) {
    const SavePlan plan(tensors, num_ranks);
    std::map<int, std::int64_t> bytes;
    for (const PlannedTensor& planned : plan.tensors()) bytes[planned.writer] += planned.bytes();
    const double share = static_cast<double>(plan.total_bytes()) / num_ranks;
    for (const auto& [rank, count] : bytes) {
      EXPECT_NEAR(static_cast<double>(count) / share, 1.0, 0.02) << rank << " of " << num_ranks;
    }
  }
}

TEST(SavePlan, TurnsOfAllReplicasCoverThePlanOnce) {
  const auto tensors = gpt2_small();
  const SavePlan plan(tensors, 6);
  std::set<std::string> names;
  for (int replica = 0; replica < 3; ++replica) {
    const auto turns = plan.in_turns(2 * replica, 2);
    EXPECT_NE(turns[0].writer, turns[1].writer);
    for (const PlannedTensor& planned : turns) {
      EXPECT_EQ(planned.writer / 2, replica);
      EXPECT_TRUE(names.insert(planned.name()).second);
    }
  }
  EXPECT_EQ(names.size(), plan.tensors().size());
}

TEST(SavePlan, RanksWithoutATensorHaveNoFile) {
  const auto all = gpt2_small();
  const std::span<const StoredTensor> two = std::span(all).first(2);
  const SavePlan plan(two, 16);
  std::set<std::string> files;
  for (const PlannedTensor& planned : plan.tensors()) files.insert(plan.file_of(planned));
  EXPECT_EQ(files,
            (std::set<std::string>{
                "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                "optimizer-00001-of-00004.safetensors", "optimizer-00002-of-00004.safetensors",
                "optimizer-00003-of-00004.safetensors", "optimizer-00004-of-00004.safetensors"}));
}

}  // namespace
}  // namespace redspine
