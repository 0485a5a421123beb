#include "model/transformers/stored_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "model/model_spec.h"
#include "tests/support/tiny_model.h"

namespace redspine {
namespace {

ModelConfig tiny(Family family) {
  return testing::tiny_model(
      family, {.hidden_size = 8, .ffn_size = 12, .vocab_size = 11, .max_sequence_length = 6});
}

std::map<std::string, StoredTensor> by_name(const ModelConfig& config) {
  std::map<std::string, StoredTensor> tensors;
  for (const StoredTensor& tensor : stored_tensors(config)) tensors.insert({tensor.name, tensor});
  return tensors;
}

TEST(StoredTensors, AGpt2IsStoredAsTransformersNamesAndTurnsIt) {
  const auto tensors = by_name(tiny(Family::gpt2));
  const std::map<std::string, Shape> expected = {{"transformer.wte.weight", {11, 8}},
                                                 {"transformer.wpe.weight", {6, 8}},
                                                 {"transformer.ln_f.weight", {8}},
                                                 {"transformer.ln_f.bias", {8}},
                                                 {"transformer.h.1.ln_1.weight", {8}},
                                                 {"transformer.h.1.ln_1.bias", {8}},
                                                 {"transformer.h.1.ln_2.weight", {8}},
                                                 {"transformer.h.1.ln_2.bias", {8}},
                                                 {"transformer.h.1.attn.c_attn.weight", {8, 24}},
                                                 {"transformer.h.1.attn.c_attn.bias", {24}},
                                                 {"transformer.h.1.attn.c_proj.weight", {8, 8}},
                                                 {"transformer.h.1.attn.c_proj.bias", {8}},
                                                 {"transformer.h.1.mlp.c_fc.weight", {8, 12}},
                                                 {"transformer.h.1.mlp.c_fc.bias", {12}},
                                                 {"transformer.h.1.mlp.c_proj.weight", {12, 8}},
                                                 {"transformer.h.1.mlp.c_proj.bias", {8}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_EQ(tensors.at(name).shape, shape) << name;
  }
  EXPECT_EQ(tensors.size(), 4U + 2 * 12);
  EXPECT_FALSE(tensors.contains("lm_head.weight"));  // tied
  const StoredTensor& qkv = tensors.at("transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(qkv.orientation, Orientation::transposed);
  ASSERT_EQ(qkv.parts.size(), 3U);
  EXPECT_EQ(qkv.parts[0].parameter, "blocks.1.attention.query.weight");
  EXPECT_EQ(qkv.parts[1].parameter, "blocks.1.attention.key.weight");
  EXPECT_EQ(qkv.parts[2].parameter, "blocks.1.attention.value.weight");
  EXPECT_EQ(qkv.parts[1].columns, (Range{8, 16}));
}

TEST(StoredTensors, ALlamaIsStoredAsTransformersNamesIt) {
  ModelConfig config = tiny(Family::llama);
  config.num_kv_heads = 2;
  const auto tensors = by_name(config);
  const std::map<std::string, Shape> expected = {
      {"model.embed_tokens.weight", {11, 8}},
      {"model.norm.weight", {8}},
      {"lm_head.weight", {11, 8}},
      {"model.layers.0.input_layernorm.weight", {8}},
      {"model.layers.0.post_attention_layernorm.weight", {8}},
      {"model.layers.0.self_attn.q_proj.weight", {8, 8}},
      {"model.layers.0.self_attn.k_proj.weight", {4, 8}},
      {"model.layers.0.self_attn.v_proj.weight", {4, 8}},
      {"model.layers.0.self_attn.o_proj.weight", {8, 8}},
      {"model.layers.0.mlp.gate_proj.weight", {12, 8}},
      {"model.layers.0.mlp.up_proj.weight", {12, 8}},
      {"model.layers.0.mlp.down_proj.weight", {8, 12}}};
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_EQ(tensors.at(name).shape, shape) << name;
  }
  EXPECT_EQ(tensors.size(), 3U + 2 * 9);
}

TEST(StoredTensors, TheOptionsDecideTheFamilyNotItsName) {
  ModelConfig config = tiny(Family::llama);
  config.family = Family::gpt2;
  EXPECT_EQ(stored_family(config), StoredFamily::llama);
  config.norm = NormKind::layernorm;
  EXPECT_EQ(stored_family(config), StoredFamily::redspine);
  ModelConfig gpt2 = tiny(Family::gpt2);
  EXPECT_EQ(stored_family(gpt2), StoredFamily::gpt2);
  gpt2.num_kv_heads = 2;
  EXPECT_EQ(stored_family(gpt2), StoredFamily::redspine);
  EXPECT_TRUE(by_name(gpt2).contains("blocks.0.attention.key.weight"));
}

TEST(StoredTensors, EachParameterIsInOneOfThemWhateverTheOptions) {
  for (int options = 0; options < 32; ++options) {
    for (const auto& [activation, word, theirs] : enum_words<Activation>()) {
      ModelConfig config = tiny((options & 1) != 0 ? Family::gpt2 : Family::llama);
      config.activation = activation;
      config.bias = (options & 2) != 0;
      config.tie_embeddings = (options & 4) != 0;
      config.num_kv_heads = (options & 8) != 0 ? 2 : 4;
      if ((options & 16) != 0) config.norm = NormKind::layernorm;
      std::map<std::string, int> times;
      std::int64_t count = 0;
      for (const StoredTensor& tensor : stored_tensors(config)) {
        count += tensor.shape.count();
        for (const StoredPart& part : tensor.parts) ++times[part.parameter];
      }
      EXPECT_EQ(count, num_parameters(config)) << options << ", " << word;
      EXPECT_TRUE(std::all_of(times.begin(), times.end(),
                              [](const auto& named) { return named.second == 1; }));
    }
  }
}

// Through a slab of any rank and back, each element where it belongs.
TEST(StoredTensors, SlabsAreWhereTheElementsOfTheParameterAre) {
  for (const StoredTensor& tensor : stored_tensors(tiny(Family::gpt2))) {
    std::vector<float> stored(static_cast<std::size_t>(tensor.shape.count()), -1.0F);
    float next = 0.0F;
    std::map<std::string, std::vector<float>> wholes;
    for (const StoredPart& part : tensor.parts) {
      std::vector<float>& whole = wholes[part.parameter];
      whole.resize(static_cast<std::size_t>(part.shape.count()));
      for (float& value : whole) value = next++;
      for (int dim = 0; dim < part.shape.rank(); ++dim) {
        for (int parts = 1; parts <= 3; ++parts) {
          for (int index = 0; index < parts; ++index) {
            const Slab slab{part.shape, dim, partition(part.shape[dim], parts, index)};
            std::vector<float> values;
            const std::int64_t cols = part.shape.rank() == 1 ? 1 : part.shape[1];
            for (std::int64_t i = 0; i < part.shape.count(); ++i) {
              const std::int64_t along = dim == 0 ? i / cols : i % cols;
              if (along >= slab.range.begin && along < slab.range.end) {
                values.push_back(whole[static_cast<std::size_t>(i)]);
              }
            }
            const StoredRegion region = region_of(tensor, part, slab);
            copy_slab_to_stored(stored, values, tensor, region);
            std::vector<float> back(values.size());
            const std::int64_t width = tensor.num_columns();
            for (std::int64_t row = region.rows.begin; row < region.rows.end; row += 3) {
              const Range rows{row, std::min(row + 3, region.rows.end)};
              const float* first = stored.data() + row * width + region.columns.begin;
              copy_rows_to_slab(back, {.values = first, .row_stride = width, .rows = rows}, tensor,
                                region);
            }
            EXPECT_EQ(back, values) << tensor.name;
          }
        }
      }
    }
    // Stored [row][column] is parameter [column][row], or the same place where it is not turned.
    for (const StoredPart& part : tensor.parts) {
      for (std::int64_t row = 0; row < tensor.num_rows(); ++row) {
        for (std::int64_t col = part.columns.begin; col < part.columns.end; ++col) {
          const std::int64_t column = col - part.columns.begin;
          const std::int64_t element = tensor.orientation == Orientation::transposed
                                           ? column * part.shape[1] + row
                                           : row * part.columns.size() + column;
          EXPECT_EQ(stored[static_cast<std::size_t>(row * tensor.num_columns() + col)],
                    wholes[part.parameter][static_cast<std::size_t>(element)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace redspine
