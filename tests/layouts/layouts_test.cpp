// Any layout, one training run: every (tensor x data) layout of the ranks at hand against a trainer
// on one rank, from the initial weights over the first gradient to the parameters after 20 steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

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
constexpr std::int64_t kNumSteps = 20;

struct Variant {
  std::string name;
  ModelConfig model;
  std::int64_t num_accumulation_steps;
};

ModelConfig tiny(Family family) {
  return tiny_model(family, {.num_layers = 3,
                             .ffn_size = 64,
                             .vocab_size = kVocabulary,
                             .max_sequence_length = kSequenceLength});
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  all.push_back({"gpt2", tiny(Family::gpt2), 1});
  all.push_back({"gpt2_dropout", tiny(Family::gpt2), 4});
  all.back().model.dropout = 0.1;
  all.push_back({"gpt2_untied", tiny(Family::gpt2), 1});
  all.back().model.tie_embeddings = false;
  all.back().model.activation = Activation::gelu;
  all.push_back({"gpt2_grouped", tiny(Family::gpt2), 4});
  all.back().model.num_kv_heads = 2;  // biases of shared key/value heads
  all.push_back({"llama", tiny(Family::llama), 1});
  all.push_back({"llama_grouped", tiny(Family::llama), 4});
  all.back().model.num_kv_heads = 2;
  all.push_back({"llama_one_kv_tied_dropout", tiny(Family::llama), 1});
  all.back().model.num_kv_heads = 1;
  all.back().model.tie_embeddings = true;
  all.back().model.dropout = 0.1;
  // Six heads on two key/value heads: with three tensor ranks the middle one reads both.
  all.push_back({"six_heads", tiny(Family::llama), 1});
  all.back().model.hidden_size = 48;
  all.back().model.num_heads = 6;
  all.back().model.num_kv_heads = 2;
  all.back().model.ffn_size = 96;
  return all;
}

Config config_for(const Variant& variant, const std::string& tokens, int tensor, int num_data) {
  Config config;
  config.model = variant.model;
  config.data.train = {{.path = tokens}};
  config.batch = {.sequence_length = kSequenceLength,
                  .global_batch_size = kGlobalBatch,
                  .micro_batch_size = kGlobalBatch / num_data / variant.num_accumulation_steps};
  config.parallel.tensor = tensor;
  // AdamW's first steps are learning_rate * g / (|g| + epsilon). An element whose gradient happens
  // to be as small as its rounding error (1e-9 here) would get a full step of random sign, as the
  // key bias does, so epsilon lies above that error and below the gradients (1e-3).
  config.optimizer = {.learning_rate = 3e-3, .epsilon = 1e-6};
  config.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 3, .decay_steps = kNumSteps};
  config.train = {.steps = kNumSteps, .eval_interval = 0};
  return config;
}

struct Trajectory {
  WholeTensors initial;
  WholeTensors first_gradients;
  WholeTensors last;
  std::vector<StepReport> steps;
};

// Rows that several ranks hold have the same bits on all of them. Collective over `group`.
void expect_same_bits(const Parameter& parameter, const ProcessGroup& group) {
  const ParameterSpec& spec = parameter.spec;
  std::string message(reinterpret_cast<const char*>(&spec.local), sizeof(Range));
  message.append(static_cast<const char*>(parameter.value.raw()), parameter.value.bytes());
  // Shares that are split by columns are equal or disjoint; those split by rows can overlap.
  const auto rows = [&](const std::string& from, std::int64_t first, std::int64_t count) {
    const auto row_bytes =
        static_cast<std::int64_t>(parameter.value.bytes()) / parameter.value.dim(0);
    return std::string_view(from).substr(
        sizeof(Range) + static_cast<std::size_t>(first * row_bytes),
        static_cast<std::size_t>(count * row_bytes));
  };
  for (const std::string& other : group.all_gather(message)) {
    Range held;
    std::memcpy(&held, other.data(), sizeof(held));
    const std::int64_t begin = std::max(held.begin, spec.local.begin);
    const std::int64_t end = std::min(held.end, spec.local.end);
    bool is_same = true;
    if (held == spec.local) {
      is_same = other == message;
    } else if (begin < end) {
      is_same = rows(other, begin - held.begin, end - begin) ==
                rows(message, begin - spec.local.begin, end - begin);
    }
    EXPECT_EQ(is_same, true) << spec.name << " differs between ranks";
  }
}

// Collective over `ranks`.
Trajectory train(const Config& config, const ProcessGroup& ranks) {
  const auto device = make_test_device();
  ConfigProblems problems;
  config.validate(problems, ranks.size());
  problems.throw_if_any();
  RunData data(config);
  Trainer trainer(config, data, ranks, *device);
  const ProcessGroup& tensor = trainer.mesh().group(Axis::tensor);
  const auto gather_now = [&](ViewOf view) {
    return gather(trainer.model().parameters(), view, tensor, *device);
  };
  Trajectory trajectory;
  trajectory.initial = gather_now(&Parameter::value);
  for (std::int64_t step = 0; step < config.train.steps; ++step) {
    trajectory.steps.push_back(trainer.train_step());
    if (step == 0) trajectory.first_gradients = gather_now(&Parameter::gradient);
  }
  trajectory.last = gather_now(&Parameter::value);

  for (const Parameter& parameter : trainer.model().parameters().parameters()) {
    expect_same_bits(parameter, trainer.mesh().group(Axis::data));
    expect_same_bits(parameter, tensor);
  }
  return trajectory;
}

double norm(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// |a - b| / |b|.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / norm(b);
}

double relative_difference(double a, double b) { return std::abs(a - b) / std::abs(b); }

// The true gradient of a key bias is zero: a constant added to all scores of a row does not change
// their softmax. What is computed is rounding noise, which AdamW turns into steps of full length.
// So layouts differ there, and nowhere else; see expect_equal_runs for what is checked instead.
bool is_key_bias(const std::string& name) { return name.find(".key.bias") != std::string::npos; }

// The depth of a gradient, counted as its backward pass meets it: the head is L + 1, block l is
// l + 1 (from 0), the embedding is 0.
std::int64_t layer_of(const std::string& name, std::int64_t num_layers) {
  if (name.starts_with("blocks.")) return std::stoll(name.substr(7)) + 1;
  return name.starts_with("embedding") || name.starts_with("position") ? 0 : num_layers + 1;
}

// arXiv 2506.09280, theorem 5.3: rounding in the layers above amplifies the relative error of a
// gradient by a constant per layer, so it is at most k C^(L+1-l) eps at layer l.
double gradient_bound(std::int64_t layer, std::int64_t num_layers) {
  constexpr double kConstant = 8.0;
  constexpr double kGrowth = 2.0;
  return kConstant * std::pow(kGrowth, num_layers + 1 - layer) *
         std::numeric_limits<float>::epsilon();
}

void expect_equal_runs(const Trajectory& run, const Trajectory& reference, const Variant& variant) {
  const std::int64_t num_layers = variant.model.num_layers;
  EXPECT_EQ(run.initial.size(), reference.initial.size());
  for (const auto& [name, tensor] : reference.initial) {
    EXPECT_EQ(run.initial.at(name).values == tensor.values, true) << name << " starts different";
  }
  EXPECT_LT(relative_difference(run.steps[0].loss, reference.steps[0].loss), 1e-6);
  EXPECT_LT(relative_difference(run.steps[0].gradient_norm, reference.steps[0].gradient_norm),
            1e-6);
  const double global_norm = reference.steps[0].gradient_norm;
  for (const auto& [name, tensor] : reference.first_gradients) {
    const auto& gradient = run.first_gradients.at(name).values;
    if (is_key_bias(name)) {
      EXPECT_LT(norm(gradient), 1e-6 * global_norm) << name;
    } else {
      EXPECT_LT(relative_difference(gradient, tensor.values),
                gradient_bound(layer_of(name, num_layers), num_layers))
          << name;
    }
  }
  for (std::size_t s = 0; s < reference.steps.size(); ++s) {
    SCOPED_TRACE(fmt::format("step {}", s + 1));
    EXPECT_LT(relative_difference(run.steps[s].loss, reference.steps[s].loss), 1e-5);
    EXPECT_LT(relative_difference(run.steps[s].gradient_norm, reference.steps[s].gradient_norm),
              1e-4);
    EXPECT_EQ(run.steps[s].batch_hash, reference.steps[s].batch_hash);
    EXPECT_EQ(run.steps[s].tokens, reference.steps[s].tokens);
    EXPECT_EQ(run.steps[s].learning_rate, reference.steps[s].learning_rate);
  }
  for (const auto& [name, tensor] : reference.last) {
    if (is_key_bias(name)) continue;
    EXPECT_LT(relative_difference(run.last.at(name).values, tensor.values), 1e-5) << name;
  }
}

TEST(Layouts, TrainAsOneRankDoes) {
  const std::string tokens = shared_temporary_directory() + "/tokens";
  if (world().rank() == 0) write_structured_tokens(tokens, {.vocab_size = kVocabulary});
  world().barrier();
  const ProcessGroup alone = world().split(world().rank());
  for (const Variant& variant : variants()) {
    std::optional<Trajectory> reference;
    if (world().rank() == 0) {
      reference = train(config_for(variant, tokens, 1, 1), alone);
      EXPECT_NEAR(reference->steps.front().loss, std::log(kVocabulary), 0.1);
      EXPECT_LT(reference->steps.back().loss, reference->steps.front().loss - 0.1);
    }
    for (int tensor = 1; tensor <= world().size() && tensor <= 4; ++tensor) {
      if (!MeshShape::fits(world().size(), tensor)) continue;
      const int num_data = MeshShape::of(world().size(), tensor).size(Axis::data);
      if (num_data > 4 || kGlobalBatch % num_data != 0 || variant.model.num_heads % tensor != 0) {
        continue;
      }
      SCOPED_TRACE(fmt::format("{}: tensor {} x data {}", variant.name, tensor, num_data));
      const Trajectory run = train(config_for(variant, tokens, tensor, num_data), world());
      if (reference) expect_equal_runs(run, *reference, variant);
    }
  }
}

}  // namespace
}  // namespace redspine::testing
