#include "data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "tensor/error.h"

namespace redspine {

void ByteTokenizer::encode(std::string_view text, std::span<std::int32_t> tokens) const {
  assert(text.size() == tokens.size());
  std::transform(text.begin(), text.end(), tokens.begin(),
                 [](char byte) { return std::int32_t{static_cast<unsigned char>(byte)}; });
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kEndOfText) {
      text += "<|endoftext|>";
    } else if (tokens[i] >= 0 && tokens[i] < kEndOfText) {
      text += static_cast<char>(tokens[i]);
    } else {
      throw Error(fmt::format("token {} has id {}; legal for the byte tokenizer: 0 to {}", i,
                              tokens[i], kEndOfText));
    }
  }
  return text;
}

}  // namespace redspine
