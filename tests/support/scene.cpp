#include "tests/support/scene.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace redspine::testing {
namespace {

constexpr std::string_view kConfig = R"(run:
  name: run
  output_dir: runs
  seed: 7
model:
  num_layers: 2
  hidden_size: 32
  num_heads: 4
  num_kv_heads: 4
  vocab_size: 257
  max_sequence_length: 32
data:
  train: [{path: train.u16}]
  validation: [{path: validation.u16}]
  format: raw_u16
batch:
  global_batch_size: 8
  micro_batch_size: 1
train:
  steps: 4
  eval_interval: 2
)";

}  // namespace

std::string replaced(std::string text, std::string_view part, std::string_view by) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos || text.find(part, at + 1) != std::string::npos) {
    throw std::runtime_error(fmt::format("not once in the text: {}", part));
  }
  return text.replace(at, part.size(), by);
}

Scene::Scene() {
  write("config.yaml", kConfig);
  write_tokens("train.u16", 4000);
  write_tokens("validation.u16", 600);
}

std::string Scene::read(std::string_view name) const { return read_file(path(name)); }

void Scene::write(std::string_view name, std::string_view bytes) const {
  std::ofstream file(path(name), std::ios::binary);
  file << bytes;
  if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", name));
}

void Scene::write_tokens(std::string_view name, std::int64_t num_tokens) const {
  std::string bytes;
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    state = state * 1664525 + 1013904223;  // the classic of Numerical Recipes
    bytes += bytes_of(static_cast<std::uint16_t>(state >> 24));
  }
  write(name, bytes);
}

void Scene::edit(std::string_view part, std::string_view by) const {
  write("config.yaml", replaced(read("config.yaml"), part, by));
}

std::string Scene::redspine(const std::string& words) {
  return fmt::format("{} {}", REDSPINE_BINARY, words);
}

std::string Scene::train(const std::string& words) {
  return redspine("train --config config.yaml " + words);
}

std::string Scene::on_ranks(int num_ranks, const std::string& command) {
  return fmt::format("{} {} {}", REDSPINE_MPIRUN, num_ranks, command);
}

Ended Scene::run(const std::string& command, double limit_seconds) const {
  return Job(command, folder()).wait(limit_seconds);
}

std::vector<std::string> Scene::metrics(std::string_view run) const {
  std::istringstream text(read(fmt::format("{}/metrics.jsonl", run)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line.substr(0, line.find(R"(,"seconds":)")));
  }
  return lines;
}

std::vector<std::string> told(const Ended& ended) {
  std::istringstream text(ended.errors);
  std::vector<std::string> lines;
  bool is_in_frame = false;
  for (std::string line; std::getline(text, line);) {
    const bool is_frame = !line.empty() && line.find_first_not_of('-') == std::string::npos;
    if (is_frame) is_in_frame = !is_in_frame;
    // mpirun also tells of its own trouble in counting the ranks that end, and its libevent of that
    // with their streams.
    const bool is_of_mpirun = is_frame || is_in_frame || line.find("ORTE_ERROR_LOG") != line.npos ||
                              line.starts_with("[warn] Epoll ");
    if (!is_of_mpirun && !line.empty()) lines.push_back(line);
  }
  return lines;
}

void wait_until(const std::function<bool()>& condition, double limit_seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(limit_seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > limit) {
      throw std::runtime_error("waited for nothing");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace redspine::testing
