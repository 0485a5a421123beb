// GPT-2's spelling of bytes in tokenizer files: a visible character for each, so that a token is
// readable JSON whatever its bytes. The printable ones of Latin-1 stand for themselves, the others
// for U+0100 onwards in their order ("\u0120", G with a dot, is the space).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace redspine {

/// The bytes in the order of their characters' code points, which is the order of GPT-2's first 256
/// ids.
std::array<unsigned char, 256> bytes_in_alphabet_order();

/// A token's bytes in this spelling.
std::string spell_bytes(std::string_view bytes);
/// The reverse; nothing if `spelling` has a character that stands for no byte.
std::optional<std::string> read_spelling(std::string_view spelling);

}  // namespace redspine
