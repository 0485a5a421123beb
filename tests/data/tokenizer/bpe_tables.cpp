#include "tests/data/tokenizer/bpe_tables.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/splitter.h"

namespace redspine {

BpeModel byte_model() {
  BpeModel model;
  model.pattern = kGpt2Pattern;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  model.tokens.emplace_back("<|endoftext|>");
  model.end_of_text = 256;
  model.added_tokens = {{"<|endoftext|>", 256, AddedToken::Kind::special}};
  return model;
}

std::int32_t add_merge(BpeModel& model, std::int32_t left, std::int32_t right, std::int32_t rank) {
  for (const BpeMerge& merge : model.merges) {
    if (merge.left == left && merge.right == right) return merge.result;
  }
  const std::string bytes =
      model.tokens[static_cast<std::size_t>(left)] + model.tokens[static_cast<std::size_t>(right)];
  const auto found = std::find(model.tokens.begin(), model.tokens.end(), bytes);
  const auto result = static_cast<std::int32_t>(found - model.tokens.begin());
  if (found == model.tokens.end()) model.tokens.push_back(bytes);
  model.merges.push_back({left, right, result, rank});
  return result;
}

BpeModel small_model() {
  BpeModel model = byte_model();
  const std::int32_t he = add_merge(model, 'h', 'e', 0);
  const std::int32_t space_t = add_merge(model, ' ', 't', 1);
  add_merge(model, space_t, he, 2);
  add_merge(model, 'a', 'a', 3);
  return model;
}

std::string small_vocab() {
  return nlohmann::json::parse(tokenizer_json(small_model()))["model"]["vocab"].dump();
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

std::string small_tiktoken() {
  const BpeModel model = small_model();
  std::string text;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (id == 256) continue;
    text += base64(model.tokens[id]) + " " + std::to_string(id) + "\n";
  }
  return text;
}

}  // namespace redspine
