// prefetch_bench [--check] FOLDER: how many tokens per second one thread makes batches of, from a
// file of 1 GB of u16 ids that lies in the page cache, for samples of several lengths. Makes FOLDER
// and removes it. With --check the exit code is 3 where fewer come than docs/data.md promises of a
// core, by CPU time: others on the machine make the clock slower, but not that.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "data/io/file.h"
#include "data/prefetcher.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::int64_t kNumFileTokens = 500'000'000;
constexpr std::int64_t kVocabulary = 50'257;
constexpr std::int64_t kTokensABatch = std::int64_t{1} << 19;
constexpr int kNumBatches = 200;
constexpr double kLeastTokensPerSecond = 50e6;
constexpr int kExitMissed = 3;

void write_tokens(const std::string& path) {
  std::vector<std::uint16_t> block(std::size_t{1} << 20);
  std::uint32_t state = 1;
  File file = File::create(path);
  for (std::int64_t left = kNumFileTokens; left > 0;) {
    for (std::uint16_t& token : block) {
      state = state * 1664525U + 1013904223U;
      token = static_cast<std::uint16_t>((state >> 16) % kVocabulary);
    }
    const auto count = std::min(left, static_cast<std::int64_t>(block.size()));
    file.write(std::as_bytes(std::span(block).first(static_cast<std::size_t>(count))));
    left -= count;
  }
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Tokens per second of CPU time; prints a line.
double measure(const DataConfig& config, std::int64_t length) {
  const std::int64_t batch_size = kTokensABatch / length;
  TrainingData data(config, {.sequence_length = length,
                             .vocab_size = kVocabulary,
                             .global_batch_size = batch_size,
                             .seed = 1});
  Prefetcher prefetcher(data, {.global_batch_size = batch_size});
  for (int warm_up = 0; warm_up < 10; ++warm_up) prefetcher.next();
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  for (int batch = 0; batch < kNumBatches; ++batch) prefetcher.next();
  const double cpu = cpu_seconds() - cpu_start;
  const std::chrono::duration<double> clock = std::chrono::steady_clock::now() - start;
  const auto num_tokens = static_cast<double>(kNumBatches * kTokensABatch);
  fmt::print("{:>5} tokens per sample  {:7.1f} million per second, {:7.1f} per CPU second\n",
             length, num_tokens * 1e-6 / clock.count(), num_tokens * 1e-6 / cpu);
  return num_tokens / cpu;
}

int run(std::vector<std::string> words) {
  const bool is_check = !words.empty() && words.front() == "--check";
  if (is_check) words.erase(words.begin());
  if (words.size() != 1) throw ConfigError("", "prefetch_bench [--check] FOLDER");
  if (!std::filesystem::create_directory(words[0])) {
    throw ConfigError("", words[0] + ": is there; legal: a new folder");
  }
  const std::string path = words[0] + "/tokens.u16";
  write_tokens(path);
  const DataConfig config{.train = {{.path = path}}, .format = TokenFormat::raw_u16};
  bool all_hold = true;
  for (const std::int64_t length : {64, 256, 1024}) {
    all_hold = measure(config, length) >= kLeastTokensPerSecond && all_hold;
  }
  std::filesystem::remove_all(words[0]);
  fmt::print("to hold: {:.0f} million per CPU second\n", kLeastTokensPerSecond * 1e-6);
  return is_check && !all_hold ? kExitMissed : 0;
}

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  try {
    return redspine::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
