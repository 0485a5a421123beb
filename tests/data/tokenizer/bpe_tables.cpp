#include "tests/data/tokenizer/bpe_tables.h"

#include <algorithm>

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

}  // namespace redspine
