#include "tests/support/command_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/job.h"

namespace redspine::testing {

namespace {

/// `text` as one word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? R"('\'')" : std::string(1, c);
  }
  return word + "'";
}

}  // namespace

Result shell(const std::string& command) {
  constexpr double kMaxSeconds = 1200.0;
  const Scratch scratch;
  const std::string script = fmt::format("cd {}; exec 2>&1; {}",
                                         quoted(std::filesystem::current_path().string()), command);
  const Ended ended = Job("sh -c " + quoted(script), scratch.folder()).wait(kMaxSeconds);
  return {ended.exit_code, ended.output};
}

Result redspine(const std::string& words) {
  // One thread, as mpirun.sh gives each rank: results can then be compared.
  return shell("OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} " REDSPINE_BINARY " " + words);
}

Result on_ranks(int num_ranks, const std::string& words) {
  return shell(fmt::format("{} {} {} {}", REDSPINE_MPIRUN, num_ranks, REDSPINE_BINARY, words));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

void Folder::write(const std::string& name, std::string text) const {
  for (std::size_t at = 0; (at = text.find("DIR", at)) != std::string::npos;) {
    text.replace(at, 3, scratch_.folder());
  }
  scratch_.write(name, text);
}

TinyRun::TinyRun() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("The square of {} is not its double.\n", i);
  write("text", text);
  write_config("run.yaml", "");
  const Result made =
      redspine(fmt::format("tokenize {} --output {}", path("text"), path("tokens")));
  EXPECT_EQ(made.exit_code, 0) << made.output;
}

void TinyRun::write_config(const std::string& name, const std::string& more) const {
  write(name, R"(
run: {name: tiny, output_dir: DIR/runs}
model: {num_layers: 1, hidden_size: 16, num_heads: 2, vocab_size: 257, max_sequence_length: 16}
data:
  train: [{path: DIR/tokens}]
batch: {global_batch_size: 4, micro_batch_size: 1}
schedule: {warmup_steps: 0}
train: {steps: 2}
)" + more);
}

}  // namespace redspine::testing
