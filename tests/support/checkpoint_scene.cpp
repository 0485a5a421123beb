#include "tests/support/checkpoint_scene.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = R"(run:
  name: run
  output_dir: runs
  seed: 7
model:
  num_layers: 1
  hidden_size: 16
  num_heads: 2
  num_kv_heads: 2
  vocab_size: 257
  max_sequence_length: 16
  position: rope
  norm: rmsnorm
  bias: false
  dropout: 0.1
data:
  train: [{path: train.u16, weight: 2.0}, {path: second.u16, weight: 1.0}]
  validation: [{path: validation.u16}]
  format: raw_u16
batch:
  global_batch_size: 4
  micro_batch_size: 1
optimizer:
  learning_rate: 1.0e-2
schedule:
  warmup_steps: 10
  decay_steps: 400
train:
  steps: 400
  eval_interval: 2
checkpoint:
  interval: 1
  keep: 2
)";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string metrics_name(std::string_view run) { return fmt::format("runs/{}/metrics.jsonl", run); }

}  // namespace

CheckpointScene::CheckpointScene() {
  write("config.yaml", kConfig);
  // 12 and 6 samples: an epoch of either ends every few steps.
  write_tokens("train.u16", 16 * 12 + 1);
  write_tokens("second.u16", 16 * 6 + 1);
  write_tokens("validation.u16", 100);
}

fs::path CheckpointScene::run_folder(std::string_view run) const {
  return fs::canonical(folder()) / "runs" / run;
}

fs::path CheckpointScene::checkpoints(std::string_view run) const {
  return run_folder(run) / "checkpoints";
}

fs::path CheckpointScene::checkpoint(std::int64_t step, std::string_view run) const {
  return checkpoints(run) / step_name(step);
}

std::string CheckpointScene::binary() { return REDSPINE_BINARY; }

std::string CheckpointScene::command(const Start& start) {
  const std::string words =
      Scene::train(fmt::format("--set run.name={} {}", start.run, start.settings));
  const std::string rank = fmt::format(
      "sh -c 'echo $$ > pid.${{OMPI_COMM_WORLD_RANK:-0}}; exec "
      "env {} {}'",
      start.variables, words);
  // When a rank has died, mpirun need not give the others a second to end by themselves.
  const std::string all = "env OMP_NUM_THREADS=1 OMPI_MCA_odls_base_sigkill_timeout=0 ";
  return all + (start.num_ranks == 1 ? rank : Scene::on_ranks(start.num_ranks, rank));
}

Ended CheckpointScene::train(const Start& start) const { return run(command(start)); }

pid_t CheckpointScene::process(int rank) const {
  return std::stoi(read(fmt::format("pid.{}", rank)));
}

std::vector<std::string> CheckpointScene::trained(std::string_view run) const {
  std::vector<std::string> kept;
  for (const std::string& line : lines_of(read(metrics_name(run)))) {
    const bool is_wanted =
        line.starts_with(R"({"kind":"train")") || line.starts_with(R"({"kind":"validation")");
    if (is_wanted) kept.push_back(line.substr(0, line.find(R"(,"seconds":)")));
  }
  return kept;
}

std::vector<std::string> CheckpointScene::events(std::string_view run) const {
  std::vector<std::string> lines = lines_of(read(metrics_name(run)));
  std::erase_if(lines,
                [](const std::string& line) { return !line.starts_with(R"({"kind":"event")"); });
  return lines;
}

std::vector<std::int64_t> CheckpointScene::steps(std::string_view run) const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names(run)) {
    const std::string digits = name.starts_with("step_") ? name.substr(5) : "";
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) continue;
    steps.push_back(std::stoll(digits));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::int64_t CheckpointScene::newest_step(std::string_view run) const {
  const std::vector<std::int64_t> all = steps(run);
  return all.empty() ? 0 : all.back();
}

std::vector<std::string> CheckpointScene::names(std::string_view run) const {
  std::vector<std::string> names;
  const fs::path saved = folder() / "runs" / run / "checkpoints";
  if (!fs::exists(saved)) return names;
  for (const auto& entry : fs::directory_iterator(saved)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::string> CheckpointScene::hashes(std::int64_t step,
                                                           std::string_view run) const {
  const auto manifest = nlohmann::json::parse(
      read(fmt::format("runs/{}/checkpoints/{}/manifest.json", run, step_name(step))));
  std::map<std::string, std::string> hashes;
  for (const auto& file : manifest.at("files")) {
    if (!file.contains("tensors")) continue;
    for (const auto& [name, hash] : file["tensors"].items()) hashes[name] = hash;
  }
  return hashes;
}

std::string step_name(std::int64_t step) { return fmt::format("step_{:08}", step); }

void expect_prefix(const std::vector<std::string>& lines, const std::vector<std::string>& all) {
  ASSERT_LE(lines.size(), all.size());
  for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], all[i]) << "line " << i + 1;
}

}  // namespace redspine::testing
