// What short pieces of text were encoded to: natural text repeats its words, so few of them have to
// be merged anew.
//
// Direct-mapped and of fixed size; a piece takes the place of another that hashes the same. Belongs
// to one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace redspine {

class PieceCache {
 public:
  static constexpr std::size_t kMaxPieceSize = 31;  // bytes
  static constexpr std::size_t kMaxTokens = 7;

  PieceCache() : slots_(std::size_t{1} << kBits) {}

  /// The bytes of a piece, then zeros; the last byte is their number.
  using Key = std::array<std::uint64_t, 4>;

  /// One cache line. All zeros: empty.
  struct alignas(64) Slot {
    Key key = {};
    std::array<std::int32_t, kMaxTokens> tokens = {};
    std::int32_t num_tokens = 0;
  };

  /// `piece` has 1 to kMaxPieceSize bytes; it lies in `text`.
  static Key key_of(std::string_view piece, std::string_view text) {
    const std::size_t size = piece.size();
    Key key = {};
    if (piece.data() + sizeof(key) <= text.data() + text.size()) {
      // Copying a fixed number of bytes and masking the rest is several times faster.
      std::memcpy(key.data(), piece.data(), sizeof(key));
      for (std::size_t i = 0; i < key.size(); ++i) key[i] &= kMasks[size][i];
    } else {
      std::memcpy(key.data(), piece.data(), size);
    }
    key.back() |= std::uint64_t{size} << 56;
    return key;
  }

  /// The place of the key, which holds it or something else.
  Slot& slot_of(const Key& key) {
    std::uint64_t hash = key[0] * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ hash >> 32 ^ key[1]) * 0xD6E8FEB86659FD93ULL;
    hash = (hash ^ hash >> 32 ^ key[2] ^ key[3]) * 0x9E3779B97F4A7C15ULL;
    return slots_[hash >> (64 - kBits)];
  }

  /// Remembers the tokens of a piece unless they are too many.
  static void fill(Slot& slot, const Key& key, std::span<const std::int32_t> tokens) {
    if (tokens.size() > kMaxTokens) return;
    slot.key = key;
    std::copy(tokens.begin(), tokens.end(), slot.tokens.begin());
    slot.num_tokens = static_cast<std::int32_t>(tokens.size());
  }

 private:
  static constexpr int kBits = 17;  // 8 MiB

  /// [number of bytes][word]: ones where the bytes are, on a little-endian machine.
  static constexpr std::array<Key, kMaxPieceSize + 1> kMasks = [] {
    std::array<Key, kMaxPieceSize + 1> masks = {};
    for (std::size_t size = 0; size < masks.size(); ++size) {
      for (std::size_t byte = 0; byte < size; ++byte) {
        masks[size][byte / 8] |= std::uint64_t{0xFF} << (byte % 8 * 8);
      }
    }
    return masks;
  }();

  std::vector<Slot> slots_;
};

}  // namespace redspine
