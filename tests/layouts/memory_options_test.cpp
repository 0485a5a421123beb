// What saves memory changes no result: every option on every (tensor x data) layout of the ranks at
// hand. In exact mode against a run of one rank without any, by equal bits; in normal mode against
// the same layout without any, where recomputation still gives equal bits, and a sharded optimizer
// does where ranks are added up in one order; sums over shared out rows are rounded otherwise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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
constexpr std::int64_t kSequenceLength = 17;  // so that no number of ranks divides the rows
// Exact mode adds up over rows in blocks: more than one in a sample.
constexpr std::int64_t kExactSequenceLength = 41;
constexpr std::int64_t kGlobalBatch = 16;
constexpr std::int64_t kLanes = 4;

struct Variant {
  std::string name;
  ModelConfig model;
  std::int64_t num_accumulation_steps;
};

// Steps take a hundred times longer on a GPU's stand-in.
bool is_on_host_memory() { return make_test_device()->has_host_memory(); }

// Between them both families, dropout, key/value heads fewer than ranks, tied and untied, and one
// micro-batch a step or four.
std::vector<Variant> variants() {
  const TinySizes sizes{.num_layers = 3,
                        .ffn_size = 50,
                        .vocab_size = kVocabulary,
                        .max_sequence_length = kExactSequenceLength};
  std::vector<Variant> all;
  all.push_back({"gpt2_dropout", tiny_model(Family::gpt2, sizes), 4});
  all.back().model.dropout = 0.1;
  all.push_back({"llama_one_kv_dropout", tiny_model(Family::llama, sizes), 1});
  all.back().model.num_kv_heads = 1;
  all.back().model.dropout = 0.1;
  if (!is_on_host_memory()) return all;
  all.push_back({"llama_tied", tiny_model(Family::llama, sizes), 4});
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
    config.optimizer = {.learning_rate = 3e-3, .epsilon = 1e-6, .max_gradient_norm = 0.5};
    config.schedule = {.kind = ScheduleKind::constant, .warmup_steps = 0};
    config.train = {.steps = is_on_host_memory() ? 8 : 3, .eval_interval = 0};
    return config;
  }

  // Leaves and lanes that serve all layouts of up to four ranks. A micro-batch is of one lane.
  static Config exact(Config config) {
    config.run.exact = true;
    config.run.exact_leaves = 4;
    config.run.exact_lanes = kLanes;
    config.batch.micro_batch_size = std::min(config.batch.micro_batch_size, kGlobalBatch / kLanes);
    config.batch.sequence_length = kExactSequenceLength;
    config.train.steps = 10;
    return config;
  }

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
    EXPECT_EQ(run.steps[s].weights_digest, reference.steps[s].weights_digest) << "step " << s + 1;
  }
  for (const auto& [name, tensor] : reference.last) {
    EXPECT_EQ(run.last.at(name).values == tensor.values, true) << name;
  }
}

struct Tolerances {
  double norm;
  double loss;
};

void expect_near(const Outcome& run, const Outcome& reference, const Tolerances& tolerances) {
  for (std::size_t s = 0; s < reference.steps.size(); ++s) {
    const double norm = reference.steps[s].gradient_norm;
    EXPECT_NEAR(run.steps[s].gradient_norm / norm, 1.0, tolerances.norm) << "step " << s + 1;
    EXPECT_NEAR(run.steps[s].loss / reference.steps[s].loss, 1.0, tolerances.loss)
        << "step " << s + 1;
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

struct Options {
  Recompute recompute;
  OptimizerPlacement optimizer;
  bool sequence;
};

// Each of an option with each of the others.
constexpr auto kOptions = std::to_array<Options>({
    {Recompute::none, OptimizerPlacement::replicated, false},
    {Recompute::none, OptimizerPlacement::sharded, true},
    {Recompute::attention, OptimizerPlacement::replicated, true},
    {Recompute::attention, OptimizerPlacement::sharded, false},
    {Recompute::block, OptimizerPlacement::replicated, false},
    {Recompute::block, OptimizerPlacement::sharded, true},
});

Config with(Config config, const Options& options) {
  config.parallel.recompute = options.recompute;
  config.parallel.optimizer = options.optimizer;
  config.parallel.sequence = options.sequence;
  return config;
}

std::string to_string(const Variant& variant, const Config& config) {
  return fmt::format("{}: tensor {}, micro-batch {}, {}, {}, sequence {}", variant.name,
                     config.parallel.tensor, config.batch.micro_batch_size,
                     word_of(config.parallel.recompute), word_of(config.parallel.optimizer),
                     config.parallel.sequence);
}

TEST_F(MemoryOptions, InExactModeEveryRunHasTheBitsOfOneRank) {
  if (!is_on_host_memory()) return;  // exact mode is the CPU's
  const ProcessGroup alone = world().split(world().rank());
  for (const Variant& variant : variants()) {
    std::optional<Outcome> reference;
    if (world().rank() == 0) reference = train(exact(config_for(variant, {1, 1})), alone);
    for (const Layout& layout : layouts()) {
      for (const Options& options : kOptions) {
        const Config config = with(exact(config_for(variant, layout)), options);
        SCOPED_TRACE(to_string(variant, config));
        const Outcome run = train(config, world());
        if (reference) expect_same_bits(run, *reference);
      }
    }
  }
}

// Sums over rows and ranks are added up in another order, and nothing else differs.
TEST_F(MemoryOptions, RowsThatRanksShareOutGiveTheSameUpdates) {
  for (const Variant& variant : variants()) {
    for (const Layout& layout : layouts()) {
      Config config = config_for(variant, layout);
      const Outcome whole = train(config, world());
      config.parallel.sequence = true;
      SCOPED_TRACE(to_string(variant, config));
      expect_near(train(config, world()), whole, {.norm = 1e-4, .loss = 1e-5});
    }
  }
}

TEST_F(MemoryOptions, RecomputationWithSharedRowsGivesTheSameBits) {
  for (const Layout& layout : layouts()) {
    Config config = config_for(variants().front(), layout);
    config.parallel.sequence = true;
    const Outcome kept = train(config, world());
    for (const Recompute recompute : {Recompute::attention, Recompute::block}) {
      config.parallel.recompute = recompute;
      SCOPED_TRACE(to_string(variants().front(), config));
      expect_same_bits(train(config, world()), kept);
    }
  }
}

// In normal mode the sum of squares is added up in another order, so that clipping could differ by
// rounding; all else has one order between the ranks of a host.
TEST_F(MemoryOptions, AShardedOptimizerGivesTheSameUpdates) {
  const bool is_in_one_order = is_on_host_memory();
  for (const Variant& variant : variants()) {
    for (const Layout& layout : layouts()) {
      Config config = config_for(variant, layout);
      config.optimizer.max_gradient_norm = 0.0;
      const Outcome replicated = train(config, world());
      config.parallel.optimizer = OptimizerPlacement::sharded;
      SCOPED_TRACE(to_string(variant, config));
      const Outcome sharded = train(config, world());
      expect_near(sharded, replicated, {.norm = is_in_one_order ? 1e-12 : 1e-4, .loss = 1e-5});
      if (is_in_one_order) {
        for (std::size_t s = 0; s < sharded.steps.size(); ++s) {
          EXPECT_EQ(sharded.steps[s].loss, replicated.steps[s].loss);
          EXPECT_EQ(sharded.steps[s].weights_digest, replicated.steps[s].weights_digest);
        }
      }
    }
  }
}

// There layers read a copy of the parameters, which is gathered, too.
TEST_F(MemoryOptions, TogetherTheyGiveTheSameUpdatesInTheLowestPrecision) {
  const Precision precision = is_on_host_memory() ? Precision::fp32 : Precision::bf16;
  for (const Layout& layout : layouts()) {
    Config config = config_for(variants().front(), layout);
    config.run.precision = precision;
    const Outcome replicated = train(config, world());
    config = with(config, {Recompute::block, OptimizerPlacement::sharded, true});
    expect_near(train(config, world()), replicated, {.norm = 1e-2, .loss = 1e-3});
  }
}

TEST_F(MemoryOptions, AShardedOptimizerClipsByTheSameNorm) {
  for (const Layout& layout : layouts()) {
    Config config = config_for(variants().front(), layout);
    const Outcome replicated = train(config, world());
    config.parallel.optimizer = OptimizerPlacement::sharded;
    const Outcome sharded = train(config, world());
    for (const StepReport& step : replicated.steps) {
      EXPECT_GT(step.gradient_norm, config.optimizer.max_gradient_norm);
    }
    expect_near(sharded, replicated, {.norm = 1e-4, .loss = 1e-5});
  }
}

}  // namespace
}  // namespace redspine::testing
