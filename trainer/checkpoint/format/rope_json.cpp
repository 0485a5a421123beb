#include "trainer/checkpoint/format/rope_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "trainer/checkpoint/format/json_words.h"

namespace redspine {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOriginalLength = "original_max_position_embeddings";

// What transformers reads, for any kind or for one, or what is known to change nothing there. Of
// anything else nobody knows what it would change.
void check_rope_keys(const JsonReader& rope) {
  constexpr std::string_view kKnown[] = {"rope_type",
                                         "type",
                                         "rope_theta",
                                         "factor",
                                         "original_max_position_embeddings",
                                         "attention_factor",
                                         "beta_fast",
                                         "beta_slow",
                                         "mscale",
                                         "mscale_all_dim",
                                         "truncate",
                                         "low_freq_factor",
                                         "high_freq_factor",
                                         "partial_rotary_factor",
                                         "finetuned"};
  for (const std::string& key : rope.keys()) {
    // Where it is there and null, transformers takes it for false.
    if (key == "truncate" && !rope.contains(key)) rope.fail(key, "null", "true");
    const auto* const known = std::find(std::begin(kKnown), std::end(kKnown), key);
    if (known == std::end(kKnown) && rope.contains(key)) {
      rope.fail(key, "a key that is not known", fmt::format("{}", fmt::join(kKnown, ", ")));
    }
  }
}

void expect_whole_heads(const JsonReader& reader) {
  const double part = reader.real_or("partial_rotary_factor", 1.0);
  if (part != 1.0) reader.fail("partial_rotary_factor", fmt::format("{}", part), "1");
}

// As _compute_yarn_parameters of transformers has it: two scales count where both are given.
std::optional<double> read_attention_factor(const JsonReader& rope, double factor) {
  if (rope.contains("attention_factor")) return rope.real("attention_factor");
  const double scale = rope.real_or("mscale", 0.0);
  const double scale_all_dims = rope.real_or("mscale_all_dim", 0.0);
  if (scale == 0.0 || scale_all_dims == 0.0) return std::nullopt;
  if (factor <= 1.0) return 1.0;
  return (0.1 * scale * std::log(factor) + 1.0) / (0.1 * scale_all_dims * std::log(factor) + 1.0);
}

}  // namespace

// transformers has no name for the fixed form of ntk, which is nothing but a larger theta.
double theta_for_transformers(const ModelConfig& config) {
  const auto head_size = static_cast<double>(config.head_size());
  if (config.rope.scaling != RopeScaling::ntk) return config.rope.theta;
  return config.rope.theta * std::pow(config.rope.factor, head_size / (head_size - 2.0));
}

ordered_json rope_scaling_json(const RopeConfig& rope) {
  ordered_json json = {{"rope_type", transformers_word_of(rope.scaling)},
                       {"factor", rope.factor},
                       {kOriginalLength, rope.original_length}};
  switch (rope.scaling) {
    case RopeScaling::none:
    case RopeScaling::ntk:
      return nullptr;
    case RopeScaling::linear:
      // Versions before 4.43 know this kind alone, under the older key, which later ones read too.
      return {{"type", transformers_word_of(rope.scaling)}, {"factor", rope.factor}};
    case RopeScaling::yarn:
      json["beta_fast"] = rope.beta_fast;
      json["beta_slow"] = rope.beta_slow;
      if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
      return json;
    case RopeScaling::llama3:
      json["low_freq_factor"] = rope.low_freq_factor;
      json["high_freq_factor"] = rope.high_freq_factor;
      return json;
  }
  __builtin_unreachable();
}

// Version 5 of transformers has theta and scaling in one object; version 4 apart. What a kind does
// not use is not read.
RopeConfig read_rope(const JsonReader& config, std::int64_t max_sequence_length) {
  RopeConfig rope;
  rope.original_length = max_sequence_length;
  rope.theta = config.real_or("rope_theta", rope.theta);
  expect_whole_heads(config);
  const std::string key = config.contains("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!config.contains(key)) return rope;
  const JsonReader scaling = config.object(key);
  check_rope_keys(scaling);
  expect_whole_heads(scaling);
  rope.theta = scaling.real_or("rope_theta", rope.theta);
  const std::string type_key = scaling.contains("rope_type") ? "rope_type" : "type";
  if (scaling.contains(type_key)) {
    rope.scaling =
        read_transformers_word<RopeScaling>(scaling, type_key, [](RopeScaling) { return true; });
  }
  const auto read_original_length = [&] {
    const JsonReader& length = config.contains(kOriginalLength) ? config : scaling;
    rope.original_length = length.integer_or(kOriginalLength, rope.original_length);
  };
  switch (rope.scaling) {
    case RopeScaling::none:
    case RopeScaling::ntk:  // has no word there
      break;
    case RopeScaling::linear:
      rope.factor = scaling.real("factor");
      break;
    case RopeScaling::yarn:
      rope.factor = scaling.real("factor");
      read_original_length();
      rope.beta_fast = scaling.real_or("beta_fast", rope.beta_fast);
      rope.beta_slow = scaling.real_or("beta_slow", rope.beta_slow);
      rope.attention_factor = read_attention_factor(scaling, rope.factor);
      scaling.expect("truncate", true);
      break;
    case RopeScaling::llama3:
      rope.factor = scaling.real("factor");
      read_original_length();
      rope.low_freq_factor = scaling.real_or("low_freq_factor", rope.low_freq_factor);
      rope.high_freq_factor = scaling.real_or("high_freq_factor", rope.high_freq_factor);
      break;
  }
  return rope;
}

ordered_json own_rope_json(const RopeConfig& rope) {
  ordered_json json = {{"theta", rope.theta},
                       {"scaling", word_of(rope.scaling)},
                       {"factor", rope.factor},
                       {"original_length", rope.original_length},
                       {"beta_fast", rope.beta_fast},
                       {"beta_slow", rope.beta_slow},
                       {"low_freq_factor", rope.low_freq_factor},
                       {"high_freq_factor", rope.high_freq_factor}};
  if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
  return json;
}

RopeConfig read_own_rope(const JsonReader& rope) {
  RopeConfig config = {.theta = rope.real("theta"),
                       .scaling = read_word<RopeScaling>(rope, "scaling"),
                       .factor = rope.real("factor"),
                       .original_length = rope.integer("original_length"),
                       .beta_fast = rope.real("beta_fast"),
                       .beta_slow = rope.real("beta_slow"),
                       .low_freq_factor = rope.real("low_freq_factor"),
                       .high_freq_factor = rope.real("high_freq_factor"),
                       .attention_factor = std::nullopt};
  if (rope.contains("attention_factor")) {
    config.attention_factor = rope.real("attention_factor");
  }
  return config;
}

}  // namespace redspine
