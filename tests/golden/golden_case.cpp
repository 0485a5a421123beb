#include "tests/golden/golden_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace redspine::testing {
namespace {

using nlohmann::json;

std::filesystem::path golden_folder() { return REDSPINE_GOLDEN_FOLDER; }

template <class Enum>
Enum read_word(const json& section, const char* key) {
  return value_of<Enum>(section.at(key).get<std::string>()).value();
}

template <class T>
void read_if_present(const json& section, const char* key, T& value) {
  if (section.contains(key)) value = section.at(key).get<T>();
}

RopeConfig to_rope(const json& section) {
  RopeConfig rope;
  rope.theta = section.at("theta");
  rope.scaling = read_word<RopeScaling>(section, "scaling");
  rope.factor = section.at("factor");
  rope.original_length = section.at("original_length");
  read_if_present(section, "beta_fast", rope.beta_fast);
  read_if_present(section, "beta_slow", rope.beta_slow);
  read_if_present(section, "low_freq_factor", rope.low_freq_factor);
  read_if_present(section, "high_freq_factor", rope.high_freq_factor);
  if (section.contains("attention_factor")) {
    rope.attention_factor = section.at("attention_factor").get<double>();
  }
  return rope;
}

ModelConfig to_model(const json& section) {
  ModelConfig model;
  model.family = read_word<Family>(section, "family");
  model.num_layers = section.at("num_layers");
  model.hidden_size = section.at("hidden_size");
  model.num_heads = section.at("num_heads");
  model.num_kv_heads = section.at("num_kv_heads");
  model.ffn_size = section.at("ffn_size");
  model.vocab_size = section.at("vocab_size");
  model.max_sequence_length = section.at("max_sequence_length");
  model.position = read_word<Position>(section, "position");
  model.rope = to_rope(section.at("rope"));
  model.norm = read_word<NormKind>(section, "norm");
  model.norm_epsilon = section.at("norm_epsilon");
  model.activation = read_word<Activation>(section, "activation");
  model.bias = section.at("bias");
  model.tie_embeddings = section.at("tie_embeddings");
  model.dropout = section.at("dropout");
  return model;
}

OptimizerConfig to_optimizer(const json& section) {
  OptimizerConfig optimizer;
  optimizer.beta1 = section.at("beta1");
  optimizer.beta2 = section.at("beta2");
  optimizer.epsilon = section.at("epsilon");
  optimizer.weight_decay = section.at("weight_decay");
  optimizer.max_gradient_norm = section.at("max_gradient_norm");
  return optimizer;
}

std::span<const std::int32_t> batch_of(const StoredTensor& batches, std::size_t step) {
  const auto count = batches.integers.size() / static_cast<std::size_t>(batches.shape.at(0));
  return std::span(batches.integers).subspan(step * count, count);
}

}  // namespace

std::span<const std::int32_t> GoldenCase::tokens(std::size_t step) const {
  return batch_of(tensors.at("tokens"), step);
}

std::span<const std::int32_t> GoldenCase::targets(std::size_t step) const {
  return batch_of(tensors.at("targets"), step);
}

const StoredTensor& GoldenCase::parameter(std::string_view what,
                                          std::string_view parameter_name) const {
  return tensors.at(std::string(what) + "." + std::string(parameter_name));
}

std::vector<std::string> GoldenCase::parameter_names() const {
  constexpr std::string_view kPrefix = "initial.";
  std::vector<std::string> names;
  for (const auto& [key, tensor] : tensors) {
    if (key.starts_with(kPrefix)) names.push_back(key.substr(kPrefix.size()));
  }
  return names;
}

std::vector<std::string> golden_case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) throw std::runtime_error("no golden cases in " + golden_folder().string());
  return names;
}

GoldenCase read_golden_case(const std::string& name) {
  const json record = json::parse(read_golden_text(name + ".json"));
  GoldenCase golden{.name = name,
                    .model = to_model(record.at("model")),
                    .optimizer = to_optimizer(record.at("optimizer")),
                    .steps = {},
                    .batch_size = 0,
                    .sequence_length = 0,
                    .tensors = read_safetensors(golden_folder() / (name + ".safetensors"))};
  for (const json& step : record.at("steps")) {
    golden.steps.push_back({.learning_rate = step.at("learning_rate"),
                            .loss = step.at("loss"),
                            .gradient_norm = step.at("gradient_norm")});
  }
  const auto& shape = golden.tensors.at("tokens").shape;  // [step][B][T]
  golden.batch_size = shape.at(1);
  golden.sequence_length = shape.at(2);
  return golden;
}

RopeConfig parse_rope(const std::string& text) { return to_rope(json::parse(text)); }

std::string read_golden_text(const std::string& file_name) {
  std::ifstream file(golden_folder() / file_name);
  if (!file) throw std::runtime_error("cannot read " + (golden_folder() / file_name).string());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace redspine::testing
