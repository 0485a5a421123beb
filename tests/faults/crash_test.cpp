// A job is killed at every call by which a save changes the disk, and started again: it goes on
// from the newest good checkpoint, and ends as if nothing had happened.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "tests/support/checkpoint_scene.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  int num_ranks = 1;
  int killed_rank = 0;
  std::string settings = "";
};

void PrintTo(const Case& scenario, std::ostream* out) { *out << scenario.name; }
std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

/// Where a job is to die: at a call of the save of a step.
struct Place {
  std::int64_t step;
  int call;
  bool in_the_middle;
};

class Crash : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int kLastStep = 400;

  Crash() {
    const Ended ended = run_.train(start("reference", "checkpoint.interval=0"));
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    expected_ = run_.trained("reference");
    EXPECT_EQ(expected_.size(), kLastStep + kLastStep / 2);
  }

  static Start start(const std::string& run, const std::string& settings = "",
                     const std::string& variables = "") {
    return {.num_ranks = GetParam().num_ranks,
            .settings = fmt::format("checkpoint.keep=1 {} {}", GetParam().settings, settings),
            .variables = variables,
            .run = run};
  }

  std::string trap(const Place& place) const {
    return fmt::format(
        "LD_PRELOAD={} CRASH_BELOW={} CRASH_RANK={} CRASH_FROM={}. CRASH_UNTIL={}. CRASH_CALL={} "
        "CRASH_REPORT={} {}",
        REDSPINE_CRASH_SHIM, run_.checkpoints().string(), GetParam().killed_rank,
        step_name(place.step), step_name(place.step + 1), place.call, report().string(),
        place.in_the_middle ? "CRASH_HALF=1" : "");
  }

  /// Runs until it dies there; how, in the words of the shim.
  std::string die(const Place& place) const {
    fs::remove(report());
    const std::int64_t newest = run_.newest_step();
    const Ended ended = run_.train(start("run", "", trap(place)));
    EXPECT_NE(ended.exit_code, 0) << ended.output;
    EXPECT_TRUE(ended.left_behind.empty());
    const std::string text = run_.read("report");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text << ended.errors;
    if (newest > 0) {
      const std::string where =
          fmt::format("resuming from runs/run/checkpoints/{} after", step_name(newest));
      EXPECT_NE(ended.output.find(where), std::string::npos) << where << "\n" << ended.output;
    }
    return text.substr(0, text.find('\n'));
  }

  /// What a job that died during the save of `step` leaves to the next.
  void expect_nothing_lost(std::int64_t step) const {
    const std::vector<std::string> lines = run_.trained();
    expect_prefix(lines, expected_);
    const auto line = fmt::format(R"({{"kind":"train","step":{},)", step);
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                            [&](const std::string& text) { return text.starts_with(line); }));
    const std::int64_t newest = run_.newest_step();
    EXPECT_GE(newest, step - 1);
    EXPECT_LE(newest, step);
  }

  void expect_ends_as_the_reference() const {
    const Ended ended = run_.train(start("run", "checkpoint.interval=0"));
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(ended.errors.find("warning"), std::string::npos) << ended.errors;
    EXPECT_EQ(run_.trained(), expected_);
    EXPECT_EQ(run_.hashes(kLastStep), run_.hashes(kLastStep, "reference"));
    EXPECT_EQ(run_.hashes(kLastStep).size(), 3U * 10U);
    for (const std::string& name : run_.names()) {
      EXPECT_EQ(name.find('.'), std::string::npos) << "left behind: " << name;
    }
  }

  fs::path report() const { return run_.path("report"); }

  const CheckpointScene run_;
  std::vector<std::string> expected_;
};

TEST_P(Crash, AtEveryCallOfASaveLosesNothing) {
  // Complete saves, so that the next has something to remove.
  ASSERT_EQ(die({.step = 4, .call = 1, .in_the_middle = false}).find("survived"),
            std::string::npos);
  std::set<std::string> kinds;
  int call = 1;
  for (;; ++call) {
    bool is_write = false;
    for (const bool in_the_middle : {false, true}) {
      if (in_the_middle && !is_write) continue;
      // Two saves before are complete: each start gets further, and has something to remove.
      const std::int64_t step = run_.newest_step() + 3;
      SCOPED_TRACE(fmt::format("call {} of the save of step {}", call, step));
      const std::string how = die({.step = step, .call = call, .in_the_middle = in_the_middle});
      SCOPED_TRACE(how);
      ASSERT_FALSE(how.empty());
      expect_nothing_lost(step);
      if (HasFailure()) return;
      if (how == "survived") {
        kinds.insert("all");
        break;
      }
      is_write = how.starts_with("write ");
      EXPECT_EQ(how.starts_with("half a write "), in_the_middle);
      kinds.insert(how.substr(0, how.find(' ')));
    }
    if (kinds.contains("all")) break;
  }
  kinds.erase("all");
  const std::set<std::string> expected_kinds =
      GetParam().killed_rank == 0 ? std::set<std::string>{"mkdir", "create", "write",  "half",
                                                          "fsync", "rename", "unlink", "rmdir"}
                                  : std::set<std::string>{"create", "write", "half", "fsync"};
  EXPECT_EQ(kinds, expected_kinds);
  RecordProperty("calls", call - 1);
  expect_ends_as_the_reference();
}

TEST_P(Crash, InTheVeryFirstSaveStartsAnew) {
  for (const int call : {1, 2, 3, 20, 40}) {
    SCOPED_TRACE(call);
    if (GetParam().killed_rank != 0 && call == 40) continue;
    const std::string how = die({.step = 1, .call = call, .in_the_middle = true});
    ASSERT_NE(how, "survived");
    EXPECT_EQ(run_.newest_step(), 0);
  }
  expect_ends_as_the_reference();
}

INSTANTIATE_TEST_SUITE_P(On, Crash,
                         ::testing::Values(Case{.name = "OneRank"},
                                           Case{.name = "OneRankThatWaitsForItsSaves",
                                                .settings = "checkpoint.async=false"},
                                           Case{.name = "TheFirstOfTwoRanks",
                                                .num_ranks = 2,
                                                .killed_rank = 0,
                                                .settings = "parallel.tensor=2"},
                                           Case{.name = "TheSecondOfTwoRanks",
                                                .num_ranks = 2,
                                                .killed_rank = 1,
                                                .settings = "parallel.tensor=2"}),
                         name_of);

}  // namespace
}  // namespace redspine::testing
