// Token files for tests of training: made by a rule with some noise, so that a small model learns
// something within a few steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/megatron_writer.h"

namespace redspine::testing {

struct StructuredTokens {
  std::int64_t vocab_size = 257;
  int num_documents = 40;
  int document_length = 150;  // tokens
};

/// Writes PREFIX.bin and PREFIX.idx; the same tokens for the same options.
inline void write_structured_tokens(const std::string& prefix, const StructuredTokens& options) {
  MegatronWriter writer(prefix, options.vocab_size);
  const auto vocab_size = static_cast<std::uint32_t>(options.vocab_size);
  std::uint32_t state = 1;
  std::uint32_t previous = 7;
  for (int document = 0; document < options.num_documents; ++document) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < options.document_length; ++i) {
      state = state * 1664525U + 1013904223U;
      const bool follows_the_rule = (state >> 24) < 160;
      previous = (follows_the_rule ? previous * 5 + 3 : state >> 8) % vocab_size;
      tokens.push_back(static_cast<std::int32_t>(previous));
    }
    writer.append(tokens);
    writer.end_document();
  }
  writer.finish();
}

}  // namespace redspine::testing
