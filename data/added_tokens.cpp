#include "data/added_tokens.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace redspine {
namespace {

unsigned char first_byte(const AddedToken& token) {
  return static_cast<unsigned char>(token.name.front());
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return std::tuple(first_byte(a), b.name.size()) < std::tuple(first_byte(b), a.name.size());
  });
  for (const AddedToken& token : tokens_) {
    ++first_[first_byte(token) + std::size_t{1}];
    may_have_space_ |= token.name.find_first_of(" \n", 1) != std::string::npos;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

AddedTokens::Match AddedTokens::find(std::string_view text) const {
  if (tokens_.empty()) return {text.size(), nullptr};
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    const std::size_t byte = static_cast<unsigned char>(text[begin]);
    for (std::size_t i = first_[byte]; i < first_[byte + 1]; ++i) {
      if (text.substr(begin).starts_with(tokens_[i].name)) return {begin, &tokens_[i]};
    }
  }
  return {text.size(), nullptr};
}

}  // namespace redspine
