// Exact mode: one run, the same bits on every layout of the ranks at hand, whatever the size of
// micro-batches and the number of threads. Each variant's digest is a constant, so that every build
// (compiler, instruction set) tests itself against all others.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <bit>
#include <cstdlib>
#include <optional>

#include "tests/support/gather.h"
#include "tests/support/mpi_main.h"
#include "tests/support/structured_tokens.h"
#include "tests/support/tiny_model.h"
#include "trainer/trainer.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kVocabulary = 257;
constexpr std::int64_t kSequenceLength = 20;  // no multiple of any block
constexpr std::int64_t kNumSteps = 30;
constexpr std::int64_t kEvaluationInterval = 11;

struct Variant {
  std::string name;
  ModelConfig model;
  std::int64_t num_leaves = 8;
  std::int64_t num_lanes = 8;
  std::int64_t global_batch = 16;
  const char* digest = "";
};

ModelConfig tiny(Family family, std::int64_t num_heads) {
  return tiny_model(family, {.hidden_size = 4 * num_heads,
                             .num_heads = num_heads,
                             .num_kv_heads = num_heads,
                             .ffn_size = 60,
                             .vocab_size = kVocabulary,
                             .max_sequence_length = kSequenceLength});
}

// What the issue of each variant is: its name.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  all.push_back({.name = "gpt2",
                 .model = tiny(Family::gpt2, 8),
                 .global_batch = 32,
                 .digest = "ac5b2316f385bd19"});
  all.push_back({.name = "gpt2_untied_dropout",
                 .model = tiny(Family::gpt2, 8),
                 .digest = "570b6be5ed4c807e"});
  all.back().model.tie_embeddings = false;
  all.back().model.activation = Activation::gelu;
  all.back().model.dropout = 0.1;
  all.push_back(
      {.name = "gpt2_grouped", .model = tiny(Family::gpt2, 8), .digest = "54d5daf8249dbd45"});
  all.back().model.num_kv_heads = 2;  // biases of shared key/value heads
  all.push_back({.name = "llama_tied_dropout",
                 .model = tiny(Family::llama, 8),
                 .digest = "ec9e5931f261bfc4"});
  all.back().model.tie_embeddings = true;
  all.back().model.dropout = 0.1;
  all.push_back(
      {.name = "llama_grouped", .model = tiny(Family::llama, 8), .digest = "8806a8671a9b3740"});
  all.back().model.num_kv_heads = 2;
  // Twelve of each: two tensor or data ranks, and three, and six. Nodes of the tree do not fit
  // ranks.
  all.push_back({.name = "twelve",
                 .model = tiny(Family::llama, 12),
                 .num_leaves = 12,
                 .num_lanes = 12,
                 .global_batch = 24,
                 .digest = "9f06db31cc535bb6"});
  all.back().model.num_kv_heads = 2;
  all.back().model.tie_embeddings = true;
  // Leaves and lanes without anything: fewer heads than leaves, one sample a step.
  all.push_back({.name = "small",
                 .model = tiny(Family::gpt2, 4),
                 .num_lanes = 4,
                 .global_batch = 4,
                 .digest = "0002098b10f3f603"});
  return all;
}

// How the ranks are used.
struct Use {
  int tensor;
  std::int64_t micro_batch;
  int num_threads;
};

Config config_for(const Variant& variant, const std::string& tokens, const Use& use) {
  Config config;
  config.model = variant.model;
  config.data.train = {{.path = tokens}};
  config.data.validation = {{.path = tokens + "_validation"}};
  config.batch = {.sequence_length = kSequenceLength,
                  .global_batch_size = variant.global_batch,
                  .micro_batch_size = use.micro_batch};
  config.parallel.tensor = use.tensor;
  config.optimizer.learning_rate = 3e-3;
  config.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 3, .decay_steps = kNumSteps};
  config.train = {.steps = kNumSteps, .eval_interval = kEvaluationInterval};
  config.run.exact = true;
  config.run.exact_leaves = variant.num_leaves;
  config.run.exact_lanes = variant.num_lanes;
  return config;
}

// Of all weights, and of each step's loss and gradient norm and each validation loss. Collective.
std::string digest_of_run(const Config& config, int num_threads) {
  ConfigProblems problems;
  config.validate(problems, world().size());
  problems.throw_if_any();
  const auto device = make_cpu_device(num_threads);
  RunData data(config);
  Trainer trainer(config, data, world(), *device);
  std::vector<std::uint64_t> numbers;
  for (std::int64_t step = 1; step <= config.train.steps; ++step) {
    const StepReport report = trainer.train_step();
    numbers.push_back(std::bit_cast<std::uint64_t>(report.loss));
    numbers.push_back(std::bit_cast<std::uint64_t>(report.gradient_norm));
    if (!config.train.is_evaluation_due(step)) continue;
    numbers.push_back(std::bit_cast<std::uint64_t>(trainer.evaluate()->loss));
  }
  const WholeTensors weights = gather(trainer.model().parameters(), &Parameter::value,
                                      trainer.mesh().group(Axis::tensor), *device);
  for (const auto& [name, tensor] : weights) {
    numbers.push_back(XXH3_64bits(tensor.values.data(), tensor.values.size() * sizeof(float)));
  }
  return fmt::format("{:016x}", XXH3_64bits(numbers.data(), numbers.size() * sizeof(numbers[0])));
}

// Of all sizes of micro-batches with all numbers of threads, or, as each of both meets each tensor
// degree somewhere, one.
std::vector<Use> uses_of(const Variant& variant) {
  const bool is_whole = std::getenv("REDSPINE_EXACT_MATRIX") != nullptr;
  std::vector<Use> uses;
  const std::int64_t per_lane = variant.global_batch / variant.num_lanes;
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (!MeshShape::fits(world().size(), tensor)) continue;
    const int num_data = world().size() / tensor;
    if (variant.num_leaves % tensor != 0 || variant.num_lanes % num_data != 0 ||
        variant.model.num_heads % tensor != 0) {
      continue;
    }
    for (const std::int64_t size : {1, 2, 4}) {
      if (!is_whole || per_lane % size != 0) continue;
      uses.push_back({.tensor = tensor, .micro_batch = size, .num_threads = 1});
      uses.push_back({.tensor = tensor, .micro_batch = size, .num_threads = 2});
    }
    if (is_whole) continue;
    const std::int64_t micro_batch = std::int64_t{1} << (uses.size() + world().size()) % 3;
    uses.push_back(
        {.tensor = tensor, .micro_batch = std::min(micro_batch, per_lane), .num_threads = 1});
  }
  // Two threads where they have a CPU each.
  if (world().size() == 1 && !is_whole) {
    uses.push_back({.tensor = 1, .micro_batch = 1, .num_threads = 2});
  }
  return uses;
}

TEST(ExactMode, HasOneSetOfBits) {
  const std::string tokens = shared_temporary_directory() + "/tokens";
  if (world().rank() == 0) {
    write_structured_tokens(tokens, {.vocab_size = kVocabulary});
    write_structured_tokens(
        tokens + "_validation",
        {.vocab_size = kVocabulary, .num_documents = 2, .document_length = 167});
  }
  world().barrier();
  for (const Variant& variant : variants()) {
    for (const Use& use : uses_of(variant)) {
      EXPECT_EQ(digest_of_run(config_for(variant, tokens, use), use.num_threads), variant.digest)
          << fmt::format("{}: tensor {} x data {}, micro-batch {}, {} threads", variant.name,
                         use.tensor, world().size() / use.tensor, use.micro_batch, use.num_threads);
    }
  }
}

}  // namespace
}  // namespace redspine::testing
