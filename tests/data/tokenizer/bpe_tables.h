// Small tables for tests of byte-pair encodings, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_model.h"

namespace redspine {

/// The 256 bytes (id = byte) and <|endoftext|> (256), with GPT-2's pattern and no merges.
BpeModel byte_model();

/// Adds a merge and, if it is new, the token that it gives; the token's id. Does nothing but that
/// if the pair has a merge already.
std::int32_t add_merge(BpeModel& model, std::int32_t left, std::int32_t right, std::int32_t rank);

/// A model that makes " the" of a space, 't', 'h' and 'e', and "aa" of two 'a'.
BpeModel small_model();

/// small_model() as GPT-2's vocab.json and merges.txt have it, and as ranks of tiktoken.
std::string small_vocab();
inline constexpr std::string_view kSmallMerges = "#version: 0.2\nh e\nĠ t\r\nĠt he\na a\n";
std::string small_tiktoken();

std::string base64(std::string_view bytes);

}  // namespace redspine
