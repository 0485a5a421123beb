// A bit flips on one rank of a job: the run ends, says where and when, and leaves no checkpoint of
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.h"
#include "tests/support/scene.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxSeconds = 120.0;

struct Layout {
  int num_ranks;
  int num_tensor;
};

class BitFlips : public ::testing::Test {
 protected:
  BitFlips() {
    scene_.edit("eval_interval: 2", "eval_interval: 0\ncheckpoint:\n  interval: 1\n  keep: 0");
  }

  // A run on which the bit flips; 4 steps, each saved.
  Ended train(const Layout& layout, const std::string& flip, const std::string& more = "") const {
    fs::remove_all(scene_.path("runs"));
    return scene_.run(
        fmt::format("env REDSPINE_FLIP_BIT={} {}", flip,
                    Scene::on_ranks(layout.num_ranks,
                                    Scene::train(fmt::format("--set parallel.tensor={} {}",
                                                             layout.num_tensor, more)))),
        kMaxSeconds);
  }

  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(scene_.path("runs/run/checkpoints"))) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // Told by one rank, beside the warning of too many threads and the word on the flip.
  static void expect_told(const Ended& ended, const std::string& pattern) {
    EXPECT_EQ(ended.exit_code, 1) << ended.errors;
    EXPECT_TRUE(ended.left_behind.empty());
    int num_told = 0;
    for (const std::string& line : told(ended)) {
      if (matches(line, "[rank * @ *] " + pattern)) ++num_told;
    }
    EXPECT_EQ(num_told, 1) << pattern << " in\n" << ended.errors;
  }

  const Scene scene_;
};

TEST_F(BitFlips, OfAWeightAGradientOrAMomentAreToldInTheirStep) {
  struct Case {
    Layout layout;
    std::string flip;
    std::string suspects;
  };
  const std::vector<Case> cases = {
      {{2, 1}, "3:1:weight:blocks.0.mlp.up.weight:17:3", "ranks 0 @ *, 1 @ *"},
      {{2, 2}, "3:0:weight:final_norm.bias:3:20", "ranks 0 @ *, 1 @ *"},
      {{4, 1}, "3:2:exp_avg:blocks.1.attention.output.weight:3:28", "rank 2 @ *"},
      {{4, 2}, "3:3:gradient:blocks.1.attention.output.weight:3:28", "ranks 1 @ *, 3 @ *"},
      {{4, 4}, "3:1:gradient:position.weight:5:29", "rank 1 @ *"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.flip);
    const std::string parameter = c.flip.substr(c.flip.find(':', 4) + 1);
    const Ended ended = train(c.layout, c.flip);
    expect_told(ended, fmt::format("step 3: the weights of ranks that hold the same differ: {} has "
                                   "the digest * on rank*; to be suspected: {} *",
                                   parameter.substr(0, parameter.find(':')), c.suspects));
    EXPECT_EQ(checkpoints(), (std::vector<std::string>{"step_00000001", "step_00000002"}));
  }
}

// Not the lowest bit, which the rounding of the update itself may take back.
TEST_F(BitFlips, OfAMomentThatMovesNoWeightAreToldByTheNextSave) {
  for (const std::string background : {"true", "false"}) {
    const Ended ended =
        train({2, 1}, "3:1:exp_avg_sq:position.weight:1000:2", "checkpoint.async=" + background);
    expect_told(ended,
                "the save after step 3: the second moments of ranks that hold the same differ: "
                "position.weight has the digest *; to be suspected: ranks 0 @ *, 1 @ * *");
    EXPECT_EQ(checkpoints(), (std::vector<std::string>{"step_00000001", "step_00000002"}));
  }
}

TEST_F(BitFlips, OfAnActivationAreToldByASpotCheck) {
  const Ended ended = train({2, 1}, "3:1:activation:blocks.0.qkv:7:26",
                            "run.spot_check_interval=1 model.num_layers=1");
  expect_told(ended,
              "step 3: spot check: what rank 1 @ * computed in block 0 is not what rank 0 @ * "
              "computed from the same input: the gradient of * differs; to be suspected: ranks "
              "0 @ *, 1 @ * *");
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"step_00000001", "step_00000002"}));
}

TEST_F(BitFlips, PassWhereNothingIsCompared) {
  const Ended ended =
      train({2, 1}, "3:1:weight:blocks.0.mlp.up.weight:17:3", "run.check_replicas=false");
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(checkpoints().size(), 4U);
}

TEST_F(BitFlips, ThatNameNothingAreAnErrorOfTheUsers) {
  expect_told_by(0, {"REDSPINE_FLIP_BIT: is \"3:1\"; legal: *"}, train({2, 1}, "3:1"));
  expect_told_by(0, {"REDSPINE_FLIP_BIT: names rank 2 of 2"}, train({2, 1}, "3:2:weight:a:0:0"));
}

}  // namespace
}  // namespace redspine::testing
