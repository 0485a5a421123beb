#include "trainer/checkpoint/format/model_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "model/config.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"

namespace redspine {
namespace {

ModelConfig config_of(Family family) {
  ModelConfig config = testing::tiny_model(
      family, {.num_layers = 3, .hidden_size = 64, .ffn_size = 100, .max_sequence_length = 128});
  config.norm_epsilon = 3e-6;
  return config;
}

void expect_same_function(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.num_layers, b.num_layers);
  EXPECT_EQ(a.hidden_size, b.hidden_size);
  EXPECT_EQ(a.num_heads, b.num_heads);
  EXPECT_EQ(a.num_kv_heads, b.num_kv_heads);
  EXPECT_EQ(a.ffn_size, b.ffn_size);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.max_sequence_length, b.max_sequence_length);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.norm_epsilon, b.norm_epsilon);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.bias, b.bias);
  EXPECT_EQ(a.tie_embeddings, b.tie_embeddings);
  if (a.position != Position::rope) return;
  EXPECT_EQ(a.rope.theta, b.rope.theta);
  EXPECT_EQ(a.rope.scaling, b.rope.scaling);
  EXPECT_EQ(a.rope.factor, b.rope.factor);
  EXPECT_EQ(a.rope.original_length, b.rope.original_length);
  EXPECT_EQ(a.rope.beta_fast, b.rope.beta_fast);
  EXPECT_EQ(a.rope.attention_factor, b.rope.attention_factor);
}

void expect_round_trip(const ModelConfig& config) {
  expect_same_function(model_from_json(model_to_json(config), "c"), config);
}

std::string type_of(const ModelConfig& config) {
  return nlohmann::json::parse(model_to_json(config)).at("model_type");
}

TEST(ModelJson, EveryKindOfModelIsReadBack) {
  ModelConfig gpt2 = config_of(Family::gpt2);
  gpt2.activation = Activation::gelu;
  gpt2.tie_embeddings = false;
  EXPECT_EQ(type_of(gpt2), "gpt2");
  expect_round_trip(gpt2);

  ModelConfig llama = config_of(Family::llama);
  llama.num_kv_heads = 2;
  llama.bias = true;
  llama.rope.scaling = RopeScaling::llama3;
  llama.rope.factor = 8.0;
  llama.rope.original_length = 16;
  EXPECT_EQ(type_of(llama), "llama");
  expect_round_trip(llama);
  llama.rope.scaling = RopeScaling::yarn;
  llama.rope.beta_fast = 20.0;
  llama.rope.attention_factor = 1.25;
  expect_round_trip(llama);

  ModelConfig mixed = config_of(Family::gpt2);
  mixed.activation = Activation::swiglu;
  mixed.num_kv_heads = 1;
  mixed.bias = false;
  EXPECT_EQ(type_of(mixed), "redspine");
  expect_round_trip(mixed);
}

TEST(ModelJson, EveryActivationIsReadBackUnderEachFamily) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const auto& [activation, word, theirs] : enum_words<Activation>()) {
      SCOPED_TRACE(word);
      ModelConfig config = config_of(family);
      config.activation = activation;
      expect_round_trip(config);
    }
  }
}

TEST(ModelJson, NtkIsALargerThetaForTransformers) {
  ModelConfig config = config_of(Family::llama);
  config.rope.scaling = RopeScaling::ntk;
  config.rope.factor = 4.0;
  const ModelConfig back = model_from_json(model_to_json(config), "c");
  EXPECT_EQ(back.rope.scaling, RopeScaling::none);
  EXPECT_DOUBLE_EQ(back.rope.theta, 10000.0 * std::pow(4.0, 16.0 / 14.0));
}

TEST(ModelJson, FilesOfBothVersionsOfTransformersAreRead) {
  const std::string common =
      R"("model_type": "llama", "vocab_size": 32, "hidden_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 64,
         "rms_norm_eps": 1e-6, )";
  const ModelConfig older = model_from_json(
      "{" + common +
          R"("rope_theta": 500000.0, "rope_scaling": {"type": "linear", "factor": 2.0}})",
      "c");
  EXPECT_EQ(older.rope.theta, 500000.0);
  EXPECT_EQ(older.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(older.num_kv_heads, 4);
  const ModelConfig newer = model_from_json(
      "{" + common +
          R"("rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}, "head_dim": 16})",
      "c");
  EXPECT_EQ(newer.rope.theta, 500000.0);
  EXPECT_EQ(newer.rope.scaling, RopeScaling::none);
}

std::string llama_with(const std::string& rope) {
  return R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 64, )" +
         rope + "}";
}

RopeConfig rope_of(const std::string& rope) {
  return model_from_json(llama_with(rope), "DIR/config.json").rope;
}

// Expected values are those of transformers 5.24, _compute_yarn_parameters.
TEST(ModelJson, YarnsScalesAreAppliedAsTransformersDoes) {
  const auto yarn = [](const std::string& more) {
    return rope_of(R"("rope_parameters": {"rope_type": "yarn", "factor": 40.0, )" + more +
                   R"("original_max_position_embeddings": 16, "rope_theta": 10000.0})");
  };
  EXPECT_EQ(yarn("").attention_factor, std::nullopt);
  const auto both = yarn(R"("mscale": 0.707, "mscale_all_dim": 1.0, )");
  EXPECT_NEAR(both.attention_factor.value_or(0.0), 0.92104235531634, 1e-12);
  EXPECT_NEAR(yarn(R"("mscale": 1.0, "mscale_all_dim": 1.0, )").attention_factor.value_or(0.0), 1.0,
              1e-12);
  // One alone does nothing there, and a factor that is given wins.
  EXPECT_EQ(yarn(R"("mscale": 0.707, )").attention_factor, std::nullopt);
  EXPECT_EQ(yarn(R"("mscale_all_dim": 0.707, "mscale": 0, )").attention_factor, std::nullopt);
  EXPECT_EQ(yarn(R"("mscale": 0.7, "mscale_all_dim": 1, "attention_factor": 1.5, )")
                .attention_factor.value_or(0.0),
            1.5);
  EXPECT_EQ(yarn(R"("truncate": true, "finetuned": true, )").original_length, 16);
}

TEST(ModelJson, WhatAKindOfRopeDoesNotUseIsNotRead) {
  const RopeConfig linear = rope_of(
      R"("rope_scaling": {"type": "linear", "factor": 2.0, "attention_factor": 3.0, "beta_fast": 5,
                          "original_max_position_embeddings": 16})");
  EXPECT_EQ(linear.attention_factor, std::nullopt);
  EXPECT_EQ(linear.beta_fast, 32.0);
  EXPECT_EQ(linear.original_length, 64);
  EXPECT_EQ(rope_of(R"("rope_parameters": {"rope_theta": 5e5})").theta, 5e5);
  // The older key wins, and so does a length outside.
  EXPECT_EQ(rope_of(R"("original_max_position_embeddings": 8,
                       "rope_parameters": {"rope_type": "default"},
                       "rope_scaling": {"rope_type": "yarn", "factor": 2.0,
                                        "original_max_position_embeddings": 16})")
                .original_length,
            8);
}

TEST(ModelJson, KeysOfRopeThatAreNotComputedAreNamed) {
  const auto error = [](const std::string& rope) {
    return config_error_of([&] { rope_of(rope); });
  };
  const std::string yarn = R"("rope_parameters": {"rope_type": "yarn", "factor": 2.0, )";
  EXPECT_EQ(error(yarn + R"("truncate": false})"),
            "DIR/config.json: rope_parameters: truncate: is false; legal: true");
  EXPECT_EQ(error(yarn + R"("truncate": null})"),
            "DIR/config.json: rope_parameters: truncate: is null; legal: true");
  EXPECT_EQ(error(yarn + R"("partial_rotary_factor": 0.5})"),
            "DIR/config.json: rope_parameters: partial_rotary_factor: is 0.5; legal: 1");
  EXPECT_EQ(error(R"("partial_rotary_factor": 0.5)"),
            "DIR/config.json: partial_rotary_factor: is 0.5; legal: 1");
  EXPECT_TRUE(error(yarn + R"("mrope_section": [1]})")
                  .starts_with("DIR/config.json: rope_parameters: mrope_section: is a key that is "
                               "not known; legal: rope_type, type, "));
  EXPECT_EQ(
      error(R"("rope_scaling": {"type": "dynamic", "factor": 2.0})"),
      "DIR/config.json: rope_scaling: type: is dynamic; legal: default, linear, yarn, llama3");
}

// Those without a gate, as their table has them: a new one is a word more.
std::string words_of_plain_activations() {
  std::string words;
  for (const EnumWord<Activation>& activation : enum_words<Activation>()) {
    for (const std::string_view word : activation.in_transformers) {
      if (is_gated(activation.value) || word.empty()) continue;
      words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
    }
  }
  return words;
}

TEST(ModelJson, WhatIsNotComputedIsNamed) {
  const auto error_with = [](const std::string& key, const nlohmann::json& value, Family family) {
    nlohmann::json json = nlohmann::json::parse(model_to_json(config_of(family)));
    json[key] = value;
    return config_error_of([&] { model_from_json(json.dump(), "DIR/config.json"); });
  };
  EXPECT_EQ(error_with("model_type", "bert", Family::gpt2),
            "DIR/config.json: model_type: is bert; legal: gpt2, llama, redspine");
  EXPECT_EQ(
      error_with("activation_function", "relu", Family::gpt2),
      "DIR/config.json: activation_function: is relu; legal: " + words_of_plain_activations());
  EXPECT_EQ(error_with("hidden_act", "gelu", Family::llama),
            "DIR/config.json: hidden_act: is gelu; legal: silu");
  EXPECT_EQ(error_with("quantization_config", {{"bits", 4}}, Family::llama),
            "DIR/config.json: quantization_config: is given; legal: none: weights of F32, F16 or "
            "BF16");
  EXPECT_EQ(error_with("head_dim", 32, Family::llama),
            "DIR/config.json: head_dim: is 32; legal: 16 = hidden_size / num_attention_heads");
  EXPECT_NE(error_with("n_head", 3, Family::gpt2).find("does not divide"), std::string::npos);
  EXPECT_NE(error_with("n_embd", nullptr, Family::gpt2).find("n_embd"), std::string::npos);
}

}  // namespace
}  // namespace redspine
