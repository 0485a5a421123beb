// libFuzzer: any bytes as a file of a tokenizer end in a tokenizer that works or in an error with a
// name. The first byte chooses the format; a zero byte parts vocab.json from merges.txt.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/splitter.h"
#include "tensor/error.h"

namespace redspine {
namespace {

const TokenizerSource kSource = {"file", "key"};

BpeModel parse(char format, std::string_view text) {
  if (format == 'j') return parse_tokenizer_json(text, kSource);
  if (format == 't') return parse_tiktoken(text, {kGpt2Pattern, "<|endoftext|>", 256}, kSource);
  const std::size_t end = std::min(text.find('\0'), text.size());
  return parse_vocab_and_merges(text.substr(0, end), text.substr(std::min(end + 1, text.size())),
                                kSource);
}

/// Names that take white space with them, or stand for other bytes, do not come back.
bool is_reversible(const AddedToken& token) {
  return !token.takes_left_space && !token.takes_right_space && !token.is_in_vocabulary;
}

void try_out(const BpeTokenizer& tokenizer) {
  const std::string text = "It's  the 1st\n\n\xFF 日本<|endoftext|>";
  std::vector<std::int32_t> tokens;
  tokenizer.encode(text, tokens);
  const auto& added = tokenizer.model().added_tokens;
  const bool has_to_come_back = std::all_of(added.begin(), added.end(), is_reversible);
  if (tokenizer.decode(tokens) != text && has_to_come_back) std::abort();
}

}  // namespace
}  // namespace redspine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace redspine;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    BpeModel model = parse(bytes[0], bytes.substr(1));
    try_out(BpeTokenizer(std::move(model), kSource, SpecialTokens::as_ids));
  } catch (const ConfigError&) {
  } catch (const Error&) {  // a pattern that takes too long to match
  }
  return 0;
}
