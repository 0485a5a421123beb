// What SIGKILL cannot show: a power cut also loses what was written but not yet synced. So a save
// must sync in the right order, which is read from the calls that it makes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/support/checkpoint_scene.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

struct Call {
  std::string rank;
  std::string kind;
  fs::path path;
  fs::path new_path;  // of a rename
};

std::vector<Call> calls_of(const std::string& log) {
  std::vector<Call> calls;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Call call;
    std::string path;
    std::string new_path;
    words >> call.rank >> call.kind >> path >> new_path;
    call.path = path;
    call.new_path = new_path;
    calls.push_back(call);
  }
  return calls;
}

/// A disk whose power may go at any time: what of it is there for sure.
class Disk {
 public:
  void apply(const Call& call) {
    if (call.kind == "create") {
      files_with_unsynced_bytes_.insert(call.path);
      unsynced_names_[call.path.parent_path()].insert(call.path.filename());
    } else if (call.kind == "mkdir") {
      unsynced_names_[call.path.parent_path()].insert(call.path.filename());
    } else if (call.kind == "write") {
      files_with_unsynced_bytes_.insert(call.path);
    } else if (call.kind == "fsync") {
      files_with_unsynced_bytes_.erase(call.path);
      unsynced_names_.erase(call.path);
    } else if (call.kind == "rename") {
      unsynced_names_[call.new_path.parent_path()].insert(call.new_path.filename());
    } else if (call.kind == "unlink") {
      files_with_unsynced_bytes_.erase(call.path);
    }
  }

  /// What a power cut would take of a folder; empty if nothing.
  std::vector<std::string> at_risk(const fs::path& folder) const {
    std::vector<std::string> risks;
    for (const fs::path& file : files_with_unsynced_bytes_) {
      if (file.parent_path() == folder) risks.push_back("the bytes of " + file.string());
    }
    const auto names = unsynced_names_.find(folder);
    if (names == unsynced_names_.end()) return risks;
    for (const fs::path& name : names->second) risks.push_back("the name " + name.string());
    return risks;
  }

 private:
  std::set<fs::path> files_with_unsynced_bytes_;
  std::map<fs::path, std::set<fs::path>> unsynced_names_;  // by folder
};

class DurableOrder : public ::testing::TestWithParam<const char*> {};

TEST_P(DurableOrder, APowerCutLosesNoCheckpointThatIsComplete) {
  const CheckpointScene run;
  constexpr int kNumSaves = 5;
  const Ended ended = run.train(
      {.num_ranks = 2,
       .settings = fmt::format("train.steps={} {}", kNumSaves, GetParam()),
       .variables = fmt::format("LD_PRELOAD={} CRASH_BELOW={} CRASH_LOG={}", REDSPINE_CRASH_SHIM,
                                run.run_folder().string(), (run.folder() / "log").string())});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;

  Disk disk;
  int num_published = 0;
  int num_removed = 0;
  fs::path newest;
  int num_synced_logs = 0;
  std::set<std::string> writers;
  std::map<fs::path, std::set<fs::path>> forgotten;  // names, by folder
  for (const Call& call : calls_of(run.read("log"))) {
    const bool is_manifest = call.path.filename() == "manifest.json";
    const bool is_of_checkpoint = call.path.parent_path() != run.run_folder();
    if (call.kind == "write" && is_of_checkpoint) writers.insert(call.rank);
    if (call.kind == "fsync" && call.path.filename() == "metrics.jsonl") ++num_synced_logs;
    if (call.kind == "forget") forgotten[call.path.parent_path()].insert(call.path.filename());
    if (call.kind == "create" && is_manifest) {
      EXPECT_EQ(disk.at_risk(call.path.parent_path()), std::vector<std::string>{})
          << "a manifest without its files";
    }
    if (call.kind == "rename" && call.path.extension() == ".partial") {
      ++num_published;
      EXPECT_EQ(disk.at_risk(call.path), std::vector<std::string>{}) << call.new_path;
      EXPECT_GE(num_synced_logs, num_published) << "a log that ends before the checkpoint";
      newest = call.new_path;
      EXPECT_TRUE(fs::exists(run.checkpoints()));
    }
    const bool is_removal = call.kind == "rename" && call.new_path.extension() == ".partial";
    if (is_removal) {
      ++num_removed;
      EXPECT_EQ(disk.at_risk(run.checkpoints()), std::vector<std::string>{})
          << "an old checkpoint goes before the new one is there for sure";
      EXPECT_EQ(forgotten[newest],
                (std::set<fs::path>{
                    "config.json", "manifest.json", "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                    "optimizer-00001-of-00002.safetensors", "optimizer-00002-of-00002.safetensors",
                    "optimizer.safetensors.index.json", "training.json"}))
          << "what is read back need not come from the medium";
    }
    disk.apply(call);
  }
  EXPECT_EQ(num_published, kNumSaves);
  EXPECT_EQ(num_removed, kNumSaves - 2);
  EXPECT_EQ(writers, (std::set<std::string>{"0", "1"}));
}

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
  return info.index == 0 ? "ASaveInTheBackground" : "ASaveThatIsWaitedFor";
}

INSTANTIATE_TEST_SUITE_P(Of, DurableOrder,
                         ::testing::Values("checkpoint.async=true", "checkpoint.async=false"),
                         name_of);

}  // namespace
}  // namespace redspine::testing
