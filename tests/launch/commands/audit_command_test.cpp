// `redspine audit` on runs as they were, and on such as somebody has changed afterwards.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/checkpoint_scene.h"
#include "tests/support/refusal.h"
#include "tests/support/tampering.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxSeconds = 60.0;
constexpr const char* kTensor = "blocks.0.mlp.up.weight";

class AuditCommand : public ::testing::Test {
 protected:
  // Eight steps, of which every second is saved.
  void train(int num_ranks, int num_tensor = 1, const std::string& more = "") {
    num_ranks_ = num_ranks;
    const Ended ended = scene_.train(
        {.num_ranks = num_ranks,
         .settings = fmt::format("train.steps=8 checkpoint.interval=2 checkpoint.keep=0 "
                                 "parallel.tensor={} {}",
                                 num_tensor, more)});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  }
  Ended audit(const std::string& words) const { return audit_on(num_ranks_, words); }
  Ended audit_on(int num_ranks, const std::string& words) const {
    const std::string command = Scene::redspine("audit --run runs/run " + words);
    return scene_.run(
        "env OMP_NUM_THREADS=1 " + (num_ranks == 1 ? command : Scene::on_ranks(num_ranks, command)),
        kMaxSeconds);
  }
  std::string checkpoint(std::int64_t step) const { return scene_.checkpoint(step); }

  void edit_metrics(const std::string& part, const std::string& by) const {
    const std::string name = "runs/run/metrics.jsonl";
    scene_.write(name, replaced(scene_.read(name), part, by));
  }
  // The value of a key in the line of a step, as it is in the file.
  std::string recorded(std::int64_t step, const std::string& key) const {
    for (const std::string& line : scene_.trained()) {
      if (!line.starts_with(fmt::format(R"({{"kind":"train","step":{},)", step))) continue;
      return nlohmann::json::parse(line + "}").at(key).dump();  // without its times
    }
    throw std::runtime_error("no line of the step");
  }

  static void expect_equal(const Ended& ended, const std::string& what) {
    EXPECT_EQ(ended.exit_code, 0) << ended.output << ended.errors;
    EXPECT_NE(ended.output.find("\nequal: " + what + "\n"), std::string::npos) << ended.output;
  }
  static void expect_different(const Ended& ended, const std::vector<std::string>& patterns) {
    EXPECT_EQ(ended.exit_code, 1) << ended.output << ended.errors;
    std::vector<std::string> lines;
    std::istringstream output(ended.output);
    for (std::string line; std::getline(output, line);) {
      if (line.starts_with("different: ")) lines.push_back(line.substr(11));
    }
    ASSERT_EQ(lines.size(), patterns.size()) << ended.output;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_TRUE(matches(lines[i], patterns[i])) << lines[i] << "\nexpected\n" << patterns[i];
    }
  }

  const CheckpointScene scene_;
  int num_ranks_ = 1;
};

TEST_F(AuditCommand, FindsARunAsItWas) {
  train(1);
  expect_equal(audit("--step 3"), "1 line of metrics.jsonl");
  expect_equal(audit("--step 4 --to 6"),
               "4 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000004, "
               "runs/run/checkpoints/step_00000006");
  const Ended all = audit("--step 1 --to 8");
  expect_equal(all,
               "8 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000002, "
               "runs/run/checkpoints/step_00000004, runs/run/checkpoints/step_00000006, "
               "runs/run/checkpoints/step_00000008");
  EXPECT_NE(all.output.find("runs/run: steps 1 to 8, replayed from the beginning on 1 data x 1 "
                            "tensor ranks\n"),
            std::string::npos)
      << all.output;
}

TEST_F(AuditCommand, FindsARunOfSeveralRanksAsItWasOnTheirLayoutAlone) {
  for (const int num_tensor : {1, 2}) {
    train(2, num_tensor, "checkpoint.resume=none");
    expect_equal(audit("--step 5 --to 6"),
                 "2 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000006");
    const std::string trained =
        fmt::format("{} data x {} tensor ranks", 2 / num_tensor, num_tensor);
    const std::string other = fmt::format("{} data x {} tensor ranks", num_tensor, 2 / num_tensor);
    const Ended one = audit_on(1, "--step 5 --set parallel.tensor=1");
    EXPECT_EQ(one.exit_code, 2) << one.output << one.errors;
    const Ended refused = audit(fmt::format("--step 5 --set parallel.tensor={}", 2 / num_tensor));
    expect_told_by(0,
                   {fmt::format("*parallel.tensor: is {}, and was {} in the run: without run.exact "
                                "that gives other bits",
                                2 / num_tensor, num_tensor)},
                   refused);
  }
  expect_told_by(0,
                 {"runs/run was trained on 1 data x 2 tensor ranks without run.exact, so that *: "
                  "audit it on 2 ranks, not on 2 data x 2 tensor ranks"},
                 audit_on(4, "--step 5"));
}

TEST_F(AuditCommand, WritesNothing) {
  train(1);
  const auto state = [&] {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
    for (const auto& entry : fs::recursive_directory_iterator(scene_.run_folder())) {
      const std::string path = entry.path();
      files[path] = {entry.is_regular_file() ? read_file(path) : "", entry.last_write_time()};
    }
    return files;
  };
  const auto before = state();
  EXPECT_EQ(audit("--step 3 --to 8").exit_code, 0);
  EXPECT_TRUE(state() == before);
}

TEST_F(AuditCommand, NamesTheTensorOfAWeightThatWasChangedInACheckpoint) {
  train(1);
  change_by_one_ulp(checkpoint(4), kTensor, 5);
  const std::string tensor = fmt::format(
      "runs/run/checkpoints/step_00000004: the tensor {} has the digest *, * in the replay",
      kTensor);
  expect_different(audit("--step 3 --to 6"), {tensor});
  // The steps from there on start from it.
  expect_different(audit("--step 5"),
                   {fmt::format("runs/run/checkpoints/step_00000004/model-*: tensor {}: its digest "
                                "is *; training.json says *",
                                kTensor)});
  // And nothing in it tells any more.
  record_digests_anew(checkpoint(4));
  expect_different(audit("--step 3 --to 6"), {tensor});
  expect_different(audit("--step 5"),
                   {"step 4, where the replay starts: weights_digest is * in metrics.jsonl, * in "
                    "the replay"});
}

TEST_F(AuditCommand, NamesTheTensorOfAMomentThatWasChanged) {
  train(2, 2);
  change_by_one_ulp(checkpoint(6), std::string("exp_avg_sq.") + kTensor, 3);
  expect_different(
      audit("--step 5 --to 8"),
      {fmt::format("runs/run/checkpoints/step_00000006: the tensor exp_avg_sq.{} has the digest *",
                   kTensor)});
}

TEST_F(AuditCommand, NamesTheLineThatWasEdited) {
  train(1);
  const std::string loss = recorded(5, "loss");
  edit_metrics("\"loss\":" + loss, "\"loss\":5.5");
  expect_different(audit("--step 5"),
                   {"step 5: loss is 5.5 in metrics.jsonl, " + loss + " in the replay"});
  // No tensor has changed, which the next checkpoint shows.
  expect_different(audit("--step 3 --to 8"), {"step 5: loss is *"});
  expect_equal(audit("--step 7"), "1 line of metrics.jsonl");
  const std::string digest = recorded(7, "weights_digest");
  edit_metrics(digest, R"("00000000000000000000000000000000")");
  expect_different(
      audit("--step 7 --to 8"),
      {"step 7: weights_digest is \"0000*\" in metrics.jsonl, " + digest + " in the replay"});
}

TEST_F(AuditCommand, NamesTheStepWhoseLineIsMissing) {
  train(1);
  const std::string metrics = scene_.read("runs/run/metrics.jsonl");
  const std::size_t begin = metrics.find(R"({"kind":"train","step":5,)");
  const std::size_t end = metrics.find('\n', begin) + 1;
  edit_metrics(metrics.substr(begin, end - begin), "");
  expect_different(audit("--step 5 --to 6"), {"step 5: has no line in metrics.jsonl"});
}

// Of a bit that flipped where nothing compares, in a run on one rank.
TEST_F(AuditCommand, FindsTheStepAndTheTensorOfABitThatFlippedInTheRun) {
  const Ended ended =
      scene_.train({.settings = "train.steps=8 checkpoint.interval=2 checkpoint.keep=0",
                    .variables = "REDSPINE_FLIP_BIT=5:0:weight:blocks.0.mlp.up.weight:9:14"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  expect_different(audit("--step 1 --to 8"),
                   {"step 5: weights_digest is * in metrics.jsonl, * in the replay",
                    "runs/run/checkpoints/step_00000006: the tensor * has the digest *"});
  expect_equal(audit("--step 3 --to 4"),
               "2 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000004");
}

TEST_F(AuditCommand, ComparesWhatThereIsOfARunWithFewLines) {
  train(1, 1, "train.log_interval=3");
  expect_equal(audit("--step 5 --to 6"),
               "1 line of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000006");
  expect_told_by(
      0,
      {"--step: runs/run has recorded nothing of what is to be replayed, step 5; its next "
       "line or checkpoint is that of step 6"},
      audit("--step 5"));
}

TEST_F(AuditCommand, ARunThatWentOnWithOtherSettingsIsAuditedInParts) {
  train(1);
  const Ended ended =
      scene_.train({.settings = "train.steps=12 checkpoint.interval=2 checkpoint.keep=0 "
                                "optimizer.learning_rate=2e-2 schedule.decay_steps=200"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  expect_equal(audit("--step 7 --to 8"),
               "2 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000008");
  expect_equal(audit("--step 9 --to 10"),
               "2 lines of metrics.jsonl, and the tensors of runs/run/checkpoints/step_00000010");
  expect_told_by(0,
                 {"optimizer.learning_rate: became 0.02 after it was 0.01 at step 8; audit *",
                  "schedule.decay_steps: became 200 after it was 400 at step 8; audit *"},
                 audit("--step 7 --to 10"));
}

TEST_F(AuditCommand, WhatCannotBeAuditedIsAnErrorOfTheUsers) {
  train(1);
  expect_told_by(0, {"--run is missing; all options: redspine audit --help"},
                 scene_.run(Scene::redspine("audit --step 3")));
  expect_told_by(0, {"--step is missing; all options: redspine audit --help"}, audit(""));
  expect_told_by(0, {"--step: is 0; legal: from 1 on"}, audit("--step 0"));
  expect_told_by(0, {"--to: is 2; legal: from --step 3 on"}, audit("--step 3 --to 2"));
  expect_told_by(0, {"--step: is 9, but runs/run has had 8 steps"}, audit("--step 9"));
  expect_told_by(0,
                 {"*optimizer.beta1: is 0.5, and was 0.9 in the run: an audit replays the run as "
                  "it was"},
                 audit("--step 3 --set optimizer.beta1=0.5"));
  expect_told_by(0, {"--run: runs is no run's directory: it has no config.yaml"},
                 scene_.run(Scene::redspine("audit --run runs --step 1")));
}

}  // namespace
}  // namespace redspine::testing
