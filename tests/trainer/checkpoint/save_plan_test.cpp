#include "trainer/checkpoint/save_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

TEST(SavePlan, RoundsOfAllReplicasCoverThePlanOnce) {
  const auto tensors = gpt2_small();
  const SavePlan plan(tensors, 6);
  std::set<std::string> names;
  for (int replica = 0; replica < 3; ++replica) {
    for (const SavePlan::Round& round : plan.rounds(2 * replica, 2, kStateParts)) {
      ASSERT_EQ(round.size(), 2U);
      for (int writer = 0; writer < 2; ++writer) {
        const PlannedTensor* planned = round[static_cast<std::size_t>(writer)];
        if (planned == nullptr) continue;
        EXPECT_EQ(planned->writer, 2 * replica + writer);
        EXPECT_TRUE(names.insert(planned->name()).second);
      }
    }
    EXPECT_NE(plan.rounds(2 * replica, 2, kStateParts).front()[1], nullptr);
  }
  EXPECT_EQ(names.size(), plan.tensors().size());
}

TEST(SavePlan, RoundsOfSomePartsAreOfTheseAlone) {
  const auto tensors = gpt2_small();
  const SavePlan plan(tensors, 4);
  constexpr std::array kMoments = {StatePart::exp_avg, StatePart::exp_avg_sq};
  std::size_t num_planned = 0;
  for (const SavePlan::Round& round : plan.rounds(0, 4, kMoments)) {
    for (const PlannedTensor* planned : round) {
      if (planned == nullptr) continue;
      EXPECT_NE(planned->part, StatePart::value);
      ++num_planned;
    }
  }
  EXPECT_EQ(num_planned, 2 * tensors.size());
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
