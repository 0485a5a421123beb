// libFuzzer: any bytes come back from encoding, and a cut at a cut point changes no token. The
// first byte chooses the pre-tokenizer.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "data/tokenizer/splitter.h"

namespace redspine {
namespace {

using Tokens = std::vector<std::int32_t>;

std::unique_ptr<BpeTokenizer> make_tokenizer(std::string_view pattern) {
  BpeTrainer trainer({.vocab_size = 300, .pattern = std::string(pattern)});
  trainer.count(
      "It's the 1st of the 22 tests, isn't it? aaaa aaaaaaaa\n\n\n  \n日本日本 ééé \xC3\xC3");
  return std::make_unique<BpeTokenizer>(trainer.train(), TokenizerSource{"trained", "key"},
                                        SpecialTokens::as_text);
}

const BpeTokenizer& tokenizer_of(std::uint8_t choice) {
  static const std::array<std::unique_ptr<BpeTokenizer>, 4> kTokenizers = {
      make_tokenizer(kGpt2Pattern), make_tokenizer(kLlama3Pattern), make_tokenizer(kCl100kPattern),
      make_tokenizer(R"(\p{Lu}?\p{L}+|\p{N}|\s+)")};
  return *kTokenizers[choice % kTokenizers.size()];
}

void check_cut(const BpeTokenizer& tokenizer, std::string_view text, const Tokens& tokens) {
  const std::size_t cut = tokenizer.cut_point(text.substr(0, text.size() / 2));
  Tokens parts;
  tokenizer.encode(text.substr(0, cut), parts);
  tokenizer.encode(text.substr(cut), parts);
  if (parts != tokens) std::abort();
}

}  // namespace
}  // namespace redspine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace redspine;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const BpeTokenizer& tokenizer = tokenizer_of(data[0]);
  Tokens tokens;
  tokenizer.encode(text, tokens);
  if (tokenizer.decode(tokens) != text) std::abort();
  check_cut(tokenizer, text, tokens);
  return 0;
}
