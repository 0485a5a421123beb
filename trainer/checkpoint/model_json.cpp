#include "trainer/checkpoint/model_json.h"

#include <cmath>
#include <map>

#include "model/stored_tensors.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/json_reader.h"

namespace redspine {
namespace {

using nlohmann::ordered_json;

template <class Enum>
struct Word {
  Enum value;
  const char* text;
};

constexpr Word<Position> kPositions[] = {{Position::learned, "learned"}, {Position::rope, "rope"}};
constexpr Word<NormKind> kNorms[] = {{NormKind::layernorm, "layernorm"},
                                     {NormKind::rmsnorm, "rmsnorm"}};
constexpr Word<Activation> kActivations[] = {{Activation::gelu_tanh, "gelu_tanh"},
                                             {Activation::gelu, "gelu"},
                                             {Activation::swiglu, "swiglu"}};
constexpr Word<RopeScaling> kScalings[] = {{RopeScaling::none, "none"},
                                           {RopeScaling::linear, "linear"},
                                           {RopeScaling::ntk, "ntk"},
                                           {RopeScaling::yarn, "yarn"},
                                           {RopeScaling::llama3, "llama3"}};
// What transformers calls the two functions.
constexpr Word<Activation> kGpt2Activations[] = {{Activation::gelu_tanh, "gelu_new"},
                                                 {Activation::gelu_tanh, "gelu_pytorch_tanh"},
                                                 {Activation::gelu, "gelu"}};

template <class Enum, std::size_t kCount>
const char* text_of(Enum value, const Word<Enum> (&words)[kCount]) {
  for (const Word<Enum>& word : words) {
    if (word.value == value) return word.text;
  }
  return words[0].text;
}

template <class Enum, std::size_t kCount>
Enum read_word(const JsonReader& reader, const std::string& key,
               const Word<Enum> (&words)[kCount]) {
  const std::string text = reader.string(key);
  std::string legal;
  for (const Word<Enum>& word : words) {
    if (text == word.text) return word.value;
    legal += fmt::format("{}{}", legal.empty() ? "" : ", ", word.text);
  }
  reader.fail(key, text, legal);
}

ordered_json gpt2_json(const ModelConfig& config) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", config.vocab_size},
          {"n_positions", config.max_sequence_length},
          {"n_ctx", config.max_sequence_length},
          {"n_embd", config.hidden_size},
          {"n_layer", config.num_layers},
          {"n_head", config.num_heads},
          {"n_inner", config.ffn_size},
          {"activation_function", text_of(config.activation, kGpt2Activations)},
          {"layer_norm_epsilon", config.norm_epsilon},
          {"resid_pdrop", config.dropout},
          {"embd_pdrop", config.dropout},
          {"attn_pdrop", config.dropout},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", config.tie_embeddings}};
}

// transformers has no name for the fixed form of ntk, which is nothing but a larger theta.
double theta_of(const ModelConfig& config) {
  const auto head_size = static_cast<double>(config.head_size());
  if (config.rope.scaling != RopeScaling::ntk) return config.rope.theta;
  return config.rope.theta * std::pow(config.rope.factor, head_size / (head_size - 2.0));
}

ordered_json rope_scaling_json(const RopeConfig& rope) {
  if (rope.scaling == RopeScaling::none || rope.scaling == RopeScaling::ntk) return nullptr;
  // Versions before 4.43 know this kind alone, under the older key, which later ones read too.
  if (rope.scaling == RopeScaling::linear) return {{"type", "linear"}, {"factor", rope.factor}};
  ordered_json json = {{"rope_type", text_of(rope.scaling, kScalings)}, {"factor", rope.factor}};
  json["original_max_position_embeddings"] = rope.original_length;
  if (rope.scaling == RopeScaling::llama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
    return json;
  }
  json["beta_fast"] = rope.beta_fast;
  json["beta_slow"] = rope.beta_slow;
  if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
  return json;
}

ordered_json llama_json(const ModelConfig& config) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.ffn_size},
          {"num_hidden_layers", config.num_layers},
          {"num_attention_heads", config.num_heads},
          {"num_key_value_heads", config.num_kv_heads},
          {"head_dim", config.head_size()},
          {"max_position_embeddings", config.max_sequence_length},
          {"rms_norm_eps", config.norm_epsilon},
          {"rope_theta", theta_of(config)},
          {"rope_scaling", rope_scaling_json(config.rope)},
          {"hidden_act", "silu"},
          {"attention_bias", config.bias},
          {"mlp_bias", config.bias},
          {"attention_dropout", config.dropout},
          {"tie_word_embeddings", config.tie_embeddings}};
}

ordered_json own_json(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  ordered_json rope_json = {{"theta", rope.theta},
                            {"scaling", text_of(rope.scaling, kScalings)},
                            {"factor", rope.factor},
                            {"original_length", rope.original_length},
                            {"beta_fast", rope.beta_fast},
                            {"beta_slow", rope.beta_slow},
                            {"low_freq_factor", rope.low_freq_factor},
                            {"high_freq_factor", rope.high_freq_factor}};
  if (rope.attention_factor) rope_json["attention_factor"] = *rope.attention_factor;
  return {{"model_type", "redspine"},
          {"num_layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"ffn_size", config.ffn_size},
          {"vocab_size", config.vocab_size},
          {"max_sequence_length", config.max_sequence_length},
          {"position", text_of(config.position, kPositions)},
          {"rope", rope_json},
          {"norm", text_of(config.norm, kNorms)},
          {"norm_epsilon", config.norm_epsilon},
          {"activation", text_of(config.activation, kActivations)},
          {"bias", config.bias},
          {"tie_embeddings", config.tie_embeddings},
          {"dropout", config.dropout}};
}

std::int64_t integer_or(const JsonReader& reader, const std::string& key, std::int64_t otherwise) {
  return reader.contains(key) ? reader.integer(key) : otherwise;
}
double real_or(const JsonReader& reader, const std::string& key, double otherwise) {
  return reader.contains(key) ? reader.real(key) : otherwise;
}
bool boolean_or(const JsonReader& reader, const std::string& key, bool otherwise) {
  return reader.contains(key) ? reader.boolean(key) : otherwise;
}

void expect(const JsonReader& reader, const std::string& key, bool legal) {
  if (boolean_or(reader, key, legal) == legal) return;
  reader.fail(key, legal ? "false" : "true", legal ? "true" : "false");
}

ModelConfig read_gpt2(const JsonReader& reader) {
  ModelConfig config = ModelConfig::preset(Family::gpt2);
  config.vocab_size = reader.integer("vocab_size");
  config.max_sequence_length = reader.integer("n_positions");
  config.hidden_size = reader.integer("n_embd");
  config.num_layers = reader.integer("n_layer");
  config.num_heads = reader.integer("n_head");
  config.num_kv_heads = config.num_heads;
  config.ffn_size =
      integer_or(reader, "n_inner", default_ffn_size(Family::gpt2, config.hidden_size));
  if (reader.contains("activation_function")) {
    config.activation = read_word(reader, "activation_function", kGpt2Activations);
  }
  config.norm_epsilon = real_or(reader, "layer_norm_epsilon", 1e-5);
  config.tie_embeddings = boolean_or(reader, "tie_word_embeddings", true);
  config.dropout = real_or(reader, "resid_pdrop", 0.1);
  expect(reader, "scale_attn_weights", true);
  expect(reader, "scale_attn_by_inverse_layer_idx", false);
  return config;
}

// Version 5 of transformers has theta and scaling in one object; version 4 apart.
RopeConfig read_rope(const JsonReader& reader, std::int64_t max_sequence_length) {
  RopeConfig rope;
  const bool has_parameters = reader.contains("rope_parameters");
  const std::string key = has_parameters ? "rope_parameters" : "rope_scaling";
  rope.original_length = max_sequence_length;
  rope.theta = real_or(reader, "rope_theta", rope.theta);
  if (!reader.contains(key)) return rope;
  const JsonReader scaling = reader.object(key);
  rope.theta = real_or(scaling, "rope_theta", rope.theta);
  const std::string type_key = scaling.contains("rope_type") ? "rope_type" : "type";
  if (scaling.string(type_key) == "default") return rope;
  constexpr Word<RopeScaling> kTheirs[] = {{RopeScaling::linear, "linear"},
                                           {RopeScaling::yarn, "yarn"},
                                           {RopeScaling::llama3, "llama3"}};
  rope.scaling = read_word(scaling, type_key, kTheirs);
  rope.factor = scaling.real("factor");
  rope.original_length =
      integer_or(scaling, "original_max_position_embeddings", rope.original_length);
  rope.beta_fast = real_or(scaling, "beta_fast", rope.beta_fast);
  rope.beta_slow = real_or(scaling, "beta_slow", rope.beta_slow);
  rope.low_freq_factor = real_or(scaling, "low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = real_or(scaling, "high_freq_factor", rope.high_freq_factor);
  if (scaling.contains("attention_factor")) {
    rope.attention_factor = scaling.real("attention_factor");
  }
  return rope;
}

ModelConfig read_llama(const JsonReader& reader) {
  ModelConfig config = ModelConfig::preset(Family::llama);
  config.vocab_size = reader.integer("vocab_size");
  config.max_sequence_length = reader.integer("max_position_embeddings");
  config.hidden_size = reader.integer("hidden_size");
  config.num_layers = reader.integer("num_hidden_layers");
  config.num_heads = reader.integer("num_attention_heads");
  config.num_kv_heads = integer_or(reader, "num_key_value_heads", config.num_heads);
  config.ffn_size = reader.integer("intermediate_size");
  config.norm_epsilon = real_or(reader, "rms_norm_eps", 1e-6);
  config.tie_embeddings = boolean_or(reader, "tie_word_embeddings", false);
  config.dropout = real_or(reader, "attention_dropout", 0.0);
  config.bias = boolean_or(reader, "attention_bias", false);
  expect(reader, "mlp_bias", config.bias);
  if (reader.contains("hidden_act") && reader.string("hidden_act") != "silu") {
    reader.fail("hidden_act", reader.string("hidden_act"), "silu");
  }
  config.rope = read_rope(reader, config.max_sequence_length);
  const std::int64_t head_size = config.num_heads > 0 ? config.head_size() : 0;
  if (integer_or(reader, "head_dim", head_size) != head_size) {
    reader.fail("head_dim", fmt::format("{}", reader.integer("head_dim")),
                fmt::format("{} = hidden_size / num_attention_heads", head_size));
  }
  return config;
}

ModelConfig read_own(const JsonReader& reader) {
  ModelConfig config;
  config.num_layers = reader.integer("num_layers");
  config.hidden_size = reader.integer("hidden_size");
  config.num_heads = reader.integer("num_heads");
  config.num_kv_heads = reader.integer("num_kv_heads");
  config.ffn_size = reader.integer("ffn_size");
  config.vocab_size = reader.integer("vocab_size");
  config.max_sequence_length = reader.integer("max_sequence_length");
  config.position = read_word(reader, "position", kPositions);
  config.norm = read_word(reader, "norm", kNorms);
  config.norm_epsilon = reader.real("norm_epsilon");
  config.activation = read_word(reader, "activation", kActivations);
  config.bias = reader.boolean("bias");
  config.tie_embeddings = reader.boolean("tie_embeddings");
  config.dropout = reader.real("dropout");
  // The family gives presets alone; the nearest one is named.
  if (config.position == Position::rope) config.family = Family::llama;
  const JsonReader rope = reader.object("rope");
  config.rope = {.theta = rope.real("theta"),
                 .scaling = read_word(rope, "scaling", kScalings),
                 .factor = rope.real("factor"),
                 .original_length = rope.integer("original_length"),
                 .beta_fast = rope.real("beta_fast"),
                 .beta_slow = rope.real("beta_slow"),
                 .low_freq_factor = rope.real("low_freq_factor"),
                 .high_freq_factor = rope.real("high_freq_factor"),
                 .attention_factor = std::nullopt};
  if (rope.contains("attention_factor")) {
    config.rope.attention_factor = rope.real("attention_factor");
  }
  return config;
}

}  // namespace

std::string model_to_json(const ModelConfig& config) {
  ordered_json json;
  switch (stored_family(config)) {
    case StoredFamily::gpt2:
      json = gpt2_json(config);
      break;
    case StoredFamily::llama:
      json = llama_json(config);
      break;
    case StoredFamily::redspine:
      json = own_json(config);
      break;
  }
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

ModelConfig model_from_json(std::string_view json, const std::string& path) {
  const JsonReader reader(json, path);
  const std::string type = reader.string("model_type");
  ModelConfig config;
  if (type == "gpt2") {
    config = read_gpt2(reader);
  } else if (type == "llama") {
    config = read_llama(reader);
  } else if (type == "redspine") {
    config = read_own(reader);
  } else {
    reader.fail("model_type", type, "gpt2, llama, redspine");
  }
  Mistakes mistakes;
  config.validate(mistakes);
  if (!mistakes.empty()) {
    throw ConfigError("", fmt::format("{}: {}", path, ConfigError(mistakes.all()).what()));
  }
  return config;
}

ModelConfig read_model_config(const std::string& directory) {
  const std::string path = directory + "/config.json";
  return model_from_json(read_text(path), path);
}

}  // namespace redspine
