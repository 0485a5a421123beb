// Files of byte-pair encodings: Hugging Face's tokenizer.json, GPT-2's vocab.json and merges.txt,
// and tiktoken's ranks.
//
// Parsers take the whole text of a file, any bytes, and give a consistent model or a ConfigError
// that names the source and the place. Local to a rank.
#pragma once

#include <string>
#include <string_view>

#include "data/io/partial_file.h"
#include "data/tokenizer/bpe_model.h"

namespace redspine {

/// Hugging Face's format of a BPE model with a ByteLevel pre-tokenizer, alone or after one Split by
/// a pattern. Merges may be strings ("a b") or pairs. What changes the text itself (normalizers,
/// prefix spaces, dropout) is rejected; what adds tokens around it (post-processors) is left out.
BpeModel parse_tokenizer_json(std::string_view text, const TokenizerSource& source);

/// GPT-2's two files: names to ids, and one merge per line in order of priority.
BpeModel parse_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                const TokenizerSource& source);

/// What tiktoken's file of ranks leaves out.
struct RankEncoding {
  std::string_view pattern;
  std::string_view end_of_text;
  std::int32_t end_of_text_id;  // no rank
};

/// tiktoken's lines "BASE64 RANK". The format names neither pattern nor special tokens, so the
/// ranks must be those of an encoding that is known (GPT-2, p50k, cl100k, o200k, Llama 3
/// and 4), to the last byte.
BpeModel parse_tiktoken(std::string_view text, const TokenizerSource& source);
/// Any ranks, of which the caller knows the rest.
BpeModel parse_tiktoken(std::string_view text, const RankEncoding& encoding,
                        const TokenizerSource& source);

/// A tokenizer.json that Hugging Face's tokenizers open and encode the same with.
std::string tokenizer_json(const BpeModel& model);
/// Writes and publishes it.
void save_tokenizer_json(const BpeModel& model, PartialFile& file);

}  // namespace redspine
