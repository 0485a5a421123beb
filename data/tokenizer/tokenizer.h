// Text to token ids and back: the interface that all kinds of tokenizer share, and the loader.
//
// A tokenizer is immutable after loading, local to a rank, and free to be used by any number of
// threads at once. Any bytes are text, and decoding gives them back, valid UTF-8 or not, but for
// the white space that a token of the file takes with it (added_tokens.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redspine {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// One more than the highest id.
  virtual std::int32_t vocab_size() const = 0;
  /// The id that ends a document. encode() never adds it.
  virtual std::int32_t end_of_text() const = 0;

  /// Appends the ids of a whole document to `tokens`.
  virtual void encode(std::string_view document, std::vector<std::int32_t>& tokens) const = 0;

  /// Where a document that is still being read can be cut: the greatest length L up to text.size()
  /// such that encoding the first L bytes of `text`, and then the rest with whatever follows it,
  /// gives the ids of the whole. 0 if no such place is known.
  virtual std::size_t cut_point(std::string_view text) const = 0;

  /// The bytes of `tokens`, special ones by their name. An Error names an id that is none.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
};

/// One token per byte, and one more that ends a document: total, and needs no file.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::int32_t kEndOfText = 256;
  static constexpr std::int32_t kVocabSize = 257;

  std::int32_t vocab_size() const override { return kVocabSize; }
  std::int32_t end_of_text() const override { return kEndOfText; }
  void encode(std::string_view document, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_point(std::string_view text) const override { return text.size(); }
  std::string decode(std::span<const std::int32_t> tokens) const override;
};

/// What the name of a special token ("<|endoftext|>") in the middle of a text is.
enum class SpecialTokens {
  as_text,  // characters like any others, so that no text can end its document
  as_ids,   // the token
};

/// The tokenizer that `name` stands for: empty or "bytes" for the byte tokenizer; else a path of a
/// tokenizer.json (Hugging Face), of a .tiktoken file, or of a folder that holds tokenizer.json or
/// vocab.json and merges.txt. ConfigError under `key`, with file and place, for anything else.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name, const std::string& key,
                                          SpecialTokens special_tokens = SpecialTokens::as_text);

}  // namespace redspine
