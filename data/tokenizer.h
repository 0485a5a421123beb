// The byte tokenizer: a token a byte, and one more that ends a document.
//
// Total and lossless: any bytes are text, and decoding gives them back. Stateless.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redspine {

class ByteTokenizer {
 public:
  static constexpr std::int32_t kEndOfText = 256;
  static constexpr std::int32_t kVocabSize = 257;

  /// Writes the id of each byte of `text` to `tokens`, which is as long.
  void encode(std::string_view text, std::span<std::int32_t> tokens) const;
  /// The bytes of `tokens`; an end of text reads "<|endoftext|>". An Error names an id that is
  /// none.
  std::string decode(std::span<const std::int32_t> tokens) const;
};

}  // namespace redspine
