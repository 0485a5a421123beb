// What saves memory changes no result: every option on every (tensor x data) layout of the ranks at
// hand. In exact mode against a run of one rank without any, by equal bits; in normal mode against
// the same layout without any, where recomputation still gives equal bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/gather.h"
#include "tests/support/mpi_main.h"
#include "tests/support/structured_tokens.h"
#include "tests/support/test_device.h"
#include "tests/support/tiny_model.h"
#include "trainer/trainer.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kVocabulary = 257;
constexpr std::int64_t kSequenceLength = 16;
constexpr std::int64_t kGlobalBatch = 16;

struct Variant {
  std::string name;
  ModelConfig model;
  std::int64_t num_accumulation_steps;
};

// Between them both families, dropout, shared key/value heads, tied and untied, and accumulation.
std::vector<Variant> variants() {
  const TinySizes sizes{.num_layers = 3,
                        .ffn_size = 50,
                        .vocab_size = kVocabulary,
                        .max_sequence_length = kSequenceLength};
  std::vector<Variant> all;
  all.push_back({"gpt2_dropout", tiny_model(Family::gpt2, sizes), 2});
  all.back().model.dropout = 0.1;
  all.push_back({"llama_one_kv_dropout", tiny_model(Family::llama, sizes), 1});
  all.back().model.num_kv_heads = 1;
  all.back().model.dropout = 0.1;
  all.push_back({"llama_tied", tiny_model(Family::llama, sizes), 2});
  all.back().model.tie_embeddings = true;
  all.push_back({"gpt2_untied_grouped", tiny_model(Family::gpt2, sizes), 1});
  all.back().model.tie_embeddings = false;
  all.back().model.num_kv_heads = 2;
  return all;
}

struct Layout {
  int tensor;
  int data;
};

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int tensor : {1, 2, 4}) {
    if (!MeshShape::fits(world().size(), tensor)) continue;
    all.push_back({tensor, MeshShape::of(world().size(), tensor).size(Axis::data)});
  }
  return all;
}

class MemoryOptions : public ::testing::Test {
 protected:
  MemoryOptions() : tokens_(shared_temporary_directory() + "/tokens") {
    if (world().rank() == 0) write_structured_tokens(tokens_, {.vocab_size = kVocabulary});
    world().barrier();
  }

  Config config_for(const Variant& variant, const Layout& layout) const {
    Config config;
    config.model = variant.model;
    config.data.train = {{.path = tokens_}};
    config.batch = {
        .sequence_length = kSequenceLength,
        .global_batch_size = kGlobalBatch,
        .micro_batch_size = kGlobalBatch / layout.data / variant.num_accumulation_steps};
    config.parallel.tensor = layout.tensor;
    config.optimizer = {.learning_rate = 3e-3, .max_gradient_norm = 0.5};
    config.schedule = {.kind = ScheduleKind::constant, .warmup_steps = 0};
    config.train = {.steps = kNumSteps, .eval_interval = 0};
    return config;
  }

  static constexpr std::int64_t kNumSteps = 8;

 private:
  std::string tokens_;
};

struct Outcome {
  std::vector<StepReport> steps;
  WholeTensors last;
};

// Collective over `ranks`.
Outcome train(const Config& config, const ProcessGroup& ranks) {
  const auto device = make_test_device();
  ConfigProblems problems;
  config.validate(problems, ranks.size());
  problems.throw_if_any();
  RunData data(config);
  Trainer trainer(config, data, ranks, *device);
  Outcome outcome;
  for (std::int64_t step = 0; step < config.train.steps; ++step) {
    outcome.steps.push_back(trainer.train_step());
  }
  outcome.last = gather(trainer.model().parameters(), &Parameter::value,
                        trainer.mesh().group(Axis::tensor), *device);
  return outcome;
}

void expect_same_bits(const Outcome& run, const Outcome& reference) {
  for (std::size_t s = 0; s < reference.steps.size(); ++s) {
    EXPECT_EQ(run.steps[s].loss, reference.steps[s].loss) << "step " << s + 1;
    EXPECT_EQ(run.steps[s].gradient_norm, reference.steps[s].gradient_norm) << "step " << s + 1;
  }
  for (const auto& [name, tensor] : reference.last) {
    EXPECT_EQ(run.last.at(name).values == tensor.values, true) << name;
  }
}

TEST_F(MemoryOptions, RecomputationGivesTheSameBitsInAnyMode) {
  for (const Variant& variant : variants()) {
    for (const Layout& layout : layouts()) {
      Config config = config_for(variant, layout);
      const Outcome kept = train(config, world());
      for (const Recompute recompute : {Recompute::attention, Recompute::block}) {
        SCOPED_TRACE(fmt::format("{}: tensor {} x data {}, {}", variant.name, layout.tensor,
                                 layout.data, word_of(recompute)));
        config.parallel.recompute = recompute;
        expect_same_bits(train(config, world()), kept);
      }
    }
  }
}

}  // namespace
}  // namespace redspine::testing
