#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tensor/value_checks.h"

namespace redspine {
namespace {

// Bounds wide enough for every model and narrow enough that no count of elements overflows.
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 22;
constexpr std::int64_t kMaxVocabSize = (std::int64_t{1} << 31) - 1;  // token ids are int32

void validate_rope(ConfigProblems& problems, const RopeConfig& rope) {
  if (!(rope.theta > 1.0) || !std::isfinite(rope.theta)) {
    problems.add("model.rope.theta",
                 fmt::format("is {}; legal: a finite number above 1", rope.theta));
  }
  if (!(rope.factor >= 1.0) || !std::isfinite(rope.factor)) {
    problems.add("model.rope.factor",
                 fmt::format("is {}; legal: a finite number of at least 1", rope.factor));
  }
  check_count(problems, "model.rope.original_length", rope.original_length, 1, kMaxSize);
  check_positive(problems, "model.rope.beta_slow", rope.beta_slow);
  if (!(rope.beta_fast > rope.beta_slow) || !std::isfinite(rope.beta_fast)) {
    problems.add("model.rope.beta_fast",
                 fmt::format("is {}; legal: a finite number above model.rope.beta_slow ({})",
                             rope.beta_fast, rope.beta_slow));
  }
  check_positive(problems, "model.rope.low_freq_factor", rope.low_freq_factor);
  if (!(rope.high_freq_factor > rope.low_freq_factor) || !std::isfinite(rope.high_freq_factor)) {
    problems.add("model.rope.high_freq_factor",
                 fmt::format("is {}; legal: a finite number above model.rope.low_freq_factor ({})",
                             rope.high_freq_factor, rope.low_freq_factor));
  }
  if (rope.attention_factor) {
    check_positive(problems, "model.rope.attention_factor", *rope.attention_factor);
  }
}

// A key that counts for some kinds of scaling alone.
struct ScalingKey {
  const char* key;
  double value;
  double unset;
  std::vector<RopeScaling> kinds;
};

/// "linear, ntk or yarn"
std::string one_of(const std::vector<RopeScaling>& kinds) {
  std::string text;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 < kinds.size() ? ", " : " or ";
    text += word_of(kinds[i]);
  }
  return text;
}

// A key that would do nothing was given in the belief that it does something. original_length is
// left out: it says how long the model was, also where nothing asks.
void reject_idle_rope_keys(ConfigProblems& problems, const ModelConfig& model) {
  using enum RopeScaling;
  const RopeConfig& rope = model.rope;
  const RopeConfig unset;
  const bool turns = model.position == Position::rope;
  if (!turns && rope.scaling != none) {
    problems.add("model.rope.scaling",
                 fmt::format("is given, but model.position is {}, so it would do nothing; legal: "
                             "none, or model.position: rope",
                             word_of(model.position)));
  }
  const ScalingKey keys[] = {
      {"model.rope.theta", rope.theta, unset.theta, {none, linear, ntk, yarn, llama3}},
      {"model.rope.factor", rope.factor, unset.factor, {linear, ntk, yarn, llama3}},
      {"model.rope.beta_fast", rope.beta_fast, unset.beta_fast, {yarn}},
      {"model.rope.beta_slow", rope.beta_slow, unset.beta_slow, {yarn}},
      {"model.rope.low_freq_factor", rope.low_freq_factor, unset.low_freq_factor, {llama3}},
      {"model.rope.high_freq_factor", rope.high_freq_factor, unset.high_freq_factor, {llama3}},
  };
  const auto reject = [&](const char* key, double value, const std::string& unset_text,
                          const std::vector<RopeScaling>& kinds) {
    problems.add(key,
                 turns ? fmt::format("is {} but model.rope.scaling is {}, so it would do nothing; "
                                     "legal: {}, or a scaling of {}",
                                     value, word_of(rope.scaling), unset_text, one_of(kinds))
                       : fmt::format("is {} but model.position is {}, so it would do nothing; "
                                     "legal: {}, or model.position: rope",
                                     value, word_of(model.position), unset_text));
  };
  for (const ScalingKey& key : keys) {
    const bool counts =
        turns && std::find(key.kinds.begin(), key.kinds.end(), rope.scaling) != key.kinds.end();
    if (!counts && key.value != key.unset) {
      reject(key.key, key.value, fmt::format("{}", key.unset), key.kinds);
    }
  }
  if (rope.attention_factor && !(turns && rope.scaling == yarn)) {
    reject("model.rope.attention_factor", *rope.attention_factor, "none", {yarn});
  }
}

}  // namespace

ModelConfig ModelConfig::preset(Family family) {
  ModelConfig config;
  config.family = family;
  switch (family) {
    case Family::gpt2:
      break;
    case Family::llama:
      config.position = Position::rope;
      config.norm = NormKind::rmsnorm;
      config.activation = Activation::swiglu;
      config.bias = false;
      config.tie_embeddings = false;
      break;
  }
  config.ffn_size = default_ffn_size(family, config.hidden_size);
  return config;
}

void ModelConfig::validate(ConfigProblems& problems) const {
  check_count(problems, "model.num_layers", num_layers, 1, kMaxLayers);
  check_count(problems, "model.hidden_size", hidden_size, 1, kMaxSize);
  check_count(problems, "model.num_heads", num_heads, 1, kMaxSize);
  check_count(problems, "model.num_kv_heads", num_kv_heads, 1, kMaxSize);
  check_count(problems, "model.ffn_size", ffn_size, 1, kMaxSize);
  check_count(problems, "model.vocab_size", vocab_size, 1, kMaxVocabSize);
  check_count(problems, "model.max_sequence_length", max_sequence_length, 1, kMaxSize);
  check_positive(problems, "model.norm_epsilon", norm_epsilon);
  if (!(dropout >= 0.0 && dropout < 1.0)) {
    problems.add("model.dropout", fmt::format("is {}; legal: 0 (off) to below 1", dropout));
  }

  if (num_heads >= 1 && hidden_size >= 1) {
    if (hidden_size % num_heads != 0) {
      problems.add("model.num_heads",
                   fmt::format("is {}, which does not divide model.hidden_size ({})", num_heads,
                               hidden_size));
    } else if (position == Position::rope && head_size() % 2 != 0) {
      problems.add("model.num_heads",
                   fmt::format("is {}, which gives heads of {} = {} / {}; rotary positions turn "
                               "pairs, so the head size must be even",
                               num_heads, head_size(), hidden_size, num_heads));
    } else if (position == Position::rope && rope.scaling == RopeScaling::ntk && head_size() < 4) {
      problems.add("model.rope.scaling",
                   fmt::format("is ntk, which changes all pairs of a head but the first, and heads "
                               "of {} = {} / {} have no other",
                               head_size(), hidden_size, num_heads));
    }
  }
  if (num_heads >= 1 && num_kv_heads >= 1 && num_heads % num_kv_heads != 0) {
    problems.add(
        "model.num_kv_heads",
        fmt::format("is {}, which does not divide model.num_heads ({})", num_kv_heads, num_heads));
  }
  validate_rope(problems, rope);
  reject_idle_rope_keys(problems, *this);
}

std::int64_t default_ffn_size(Family family, std::int64_t hidden_size) {
  constexpr std::int64_t kMultiple = 256;
  const std::int64_t two_thirds = (8 * hidden_size + 2) / 3;
  switch (family) {
    case Family::gpt2:
      return 4 * hidden_size;
    case Family::llama:
      return (two_thirds + kMultiple - 1) / kMultiple * kMultiple;
  }
  __builtin_unreachable();
}

}  // namespace redspine
