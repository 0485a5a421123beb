#include "trainer/checkpoint/format/model_json.h"

#include "data/io/folders.h"
#include "model/transformers/stored_tensors.h"
#include "trainer/checkpoint/format/json_reader.h"
#include "trainer/checkpoint/format/json_words.h"
#include "trainer/checkpoint/format/rope_json.h"

namespace redspine {
namespace {

using nlohmann::ordered_json;

ordered_json gpt2_json(const ModelConfig& config) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", word_of(StoredFamily::gpt2)},
          {"vocab_size", config.vocab_size},
          {"n_positions", config.max_sequence_length},
          {"n_ctx", config.max_sequence_length},
          {"n_embd", config.hidden_size},
          {"n_layer", config.num_layers},
          {"n_head", config.num_heads},
          {"n_inner", config.ffn_size},
          {"activation_function", transformers_word_of(config.activation)},
          {"layer_norm_epsilon", config.norm_epsilon},
          {"resid_pdrop", config.dropout},
          {"embd_pdrop", config.dropout},
          {"attn_pdrop", config.dropout},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", config.tie_embeddings}};
}

ordered_json llama_json(const ModelConfig& config) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", word_of(StoredFamily::llama)},
          {"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.ffn_size},
          {"num_hidden_layers", config.num_layers},
          {"num_attention_heads", config.num_heads},
          {"num_key_value_heads", config.num_kv_heads},
          {"head_dim", config.head_size()},
          {"max_position_embeddings", config.max_sequence_length},
          {"rms_norm_eps", config.norm_epsilon},
          {"rope_theta", theta_for_transformers(config)},
          {"rope_scaling", rope_scaling_json(config.rope)},
          {"hidden_act", transformers_word_of(config.activation)},
          {"attention_bias", config.bias},
          {"mlp_bias", config.bias},
          {"attention_dropout", config.dropout},
          {"tie_word_embeddings", config.tie_embeddings}};
}

ordered_json own_json(const ModelConfig& config) {
  return {{"model_type", word_of(StoredFamily::redspine)},
          {"num_layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"ffn_size", config.ffn_size},
          {"vocab_size", config.vocab_size},
          {"max_sequence_length", config.max_sequence_length},
          {"position", word_of(config.position)},
          {"rope", own_rope_json(config.rope)},
          {"norm", word_of(config.norm)},
          {"norm_epsilon", config.norm_epsilon},
          {"activation", word_of(config.activation)},
          {"bias", config.bias},
          {"tie_embeddings", config.tie_embeddings},
          {"dropout", config.dropout}};
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
      reader.integer_or("n_inner", default_ffn_size(Family::gpt2, config.hidden_size));
  if (reader.contains("activation_function")) {
    config.activation = read_transformers_word<Activation>(
        reader, "activation_function", [](Activation word) { return !is_gated(word); });
  }
  config.norm_epsilon = reader.real_or("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = reader.boolean_or("tie_word_embeddings", true);
  config.dropout = reader.real_or("resid_pdrop", 0.1);
  reader.expect("scale_attn_weights", true);
  reader.expect("scale_attn_by_inverse_layer_idx", false);
  return config;
}

ModelConfig read_llama(const JsonReader& reader) {
  ModelConfig config = ModelConfig::preset(Family::llama);
  config.vocab_size = reader.integer("vocab_size");
  config.max_sequence_length = reader.integer("max_position_embeddings");
  config.hidden_size = reader.integer("hidden_size");
  config.num_layers = reader.integer("num_hidden_layers");
  config.num_heads = reader.integer("num_attention_heads");
  config.num_kv_heads = reader.integer_or("num_key_value_heads", config.num_heads);
  config.ffn_size = reader.integer("intermediate_size");
  config.norm_epsilon = reader.real_or("rms_norm_eps", 1e-6);
  config.tie_embeddings = reader.boolean_or("tie_word_embeddings", false);
  config.dropout = reader.real_or("attention_dropout", 0.0);
  config.bias = reader.boolean_or("attention_bias", false);
  reader.expect("mlp_bias", config.bias);
  if (reader.contains("hidden_act")) {
    config.activation = read_transformers_word<Activation>(reader, "hidden_act", is_gated);
  }
  config.rope = read_rope(reader, config.max_sequence_length);
  const std::int64_t head_size = config.num_heads > 0 ? config.head_size() : 0;
  if (reader.integer_or("head_dim", head_size) != head_size) {
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
  config.position = read_word<Position>(reader, "position");
  config.norm = read_word<NormKind>(reader, "norm");
  config.norm_epsilon = reader.real("norm_epsilon");
  config.activation = read_word<Activation>(reader, "activation");
  config.bias = reader.boolean("bias");
  config.tie_embeddings = reader.boolean("tie_embeddings");
  config.dropout = reader.real("dropout");
  // The family gives presets alone; the nearest one is named.
  switch (config.position) {
    case Position::learned:
      break;
    case Position::rope:
      config.family = Family::llama;
      config.rope = read_own_rope(reader.object("rope"));
      break;
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

std::vector<Setting> model_options(const ModelConfig& config) {
  std::vector<Setting> options;
  const auto text = [](const ordered_json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  const ordered_json json = own_json(config);
  for (const auto& [key, value] : json.items()) {
    if (key == "model_type") continue;
    if (!value.is_object()) {
      options.push_back({"model." + key, text(value)});
      continue;
    }
    for (const auto& [name, part] : value.items()) {
      options.push_back({fmt::format("model.{}.{}", key, name), text(part)});
    }
  }
  return options;
}

ModelConfig model_from_json(std::string_view json, const std::string& path) {
  const JsonReader reader(json, path);
  const auto family = read_word<StoredFamily>(reader, "model_type");
  if (reader.contains("quantization_config")) {
    reader.fail("quantization_config", "given", "none: weights of F32, F16 or BF16");
  }
  ModelConfig config;
  switch (family) {
    case StoredFamily::gpt2:
      config = read_gpt2(reader);
      break;
    case StoredFamily::llama:
      config = read_llama(reader);
      break;
    case StoredFamily::redspine:
      config = read_own(reader);
      break;
  }
  ConfigProblems problems;
  config.validate(problems);
  if (!problems.empty()) {
    throw ConfigError("", fmt::format("{}: {}", path, ConfigError(problems.all()).what()));
  }
  return config;
}

ModelConfig read_model_config(const std::string& directory) {
  const std::string path = directory + "/config.json";
  return model_from_json(read_text(path), path);
}

}  // namespace redspine
