#include "data/tokenizer/byte_alphabet.h"

#include <cstddef>

#include "data/tokenizer/utf8.h"

namespace redspine {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr std::size_t kNumSubstitutes = 68;

bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<char32_t, 256> character_of = {};                       // [byte]
  std::array<int, kFirstSubstitute + kNumSubstitutes> byte_of = {};  // [character]; -1: none
};

constexpr std::size_t index(char32_t character) { return character; }

Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  char32_t substitute = kFirstSubstitute;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? byte : substitute++;
    alphabet.character_of[byte] = character;
    alphabet.byte_of[index(character)] = static_cast<int>(byte);
  }
  return alphabet;
}

const Alphabet& alphabet() {
  static const Alphabet kAlphabet = make_alphabet();
  return kAlphabet;
}

}  // namespace

std::array<unsigned char, 256> bytes_in_alphabet_order() {
  std::array<unsigned char, 256> bytes = {};
  std::size_t next = 0;
  for (const int byte : alphabet().byte_of) {
    if (byte >= 0) bytes[next++] = static_cast<unsigned char>(byte);
  }
  return bytes;
}

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) {
    append_utf8(alphabet().character_of[static_cast<unsigned char>(byte)], spelling);
  }
  return spelling;
}

std::optional<std::string> read_spelling(std::string_view spelling) {
  if (valid_utf8_prefix(spelling) != spelling.size()) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint character = code_point_at(spelling, at);
    if (character.value >= alphabet().byte_of.size()) return std::nullopt;
    const int byte = alphabet().byte_of[index(character.value)];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += character.length;
  }
  return bytes;
}

}  // namespace redspine
