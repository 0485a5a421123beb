// Counts how often each piece of text occurs: a hash table over one block of memory that holds the
// bytes of all pieces.
//
// Memory grows with the distinct pieces. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace redspine {

class PieceCounter {
 public:
  /// Counts `piece` another `times`.
  void add(std::string_view piece, std::int64_t times);

  std::size_t num_pieces() const { return entries_.size(); }
  /// Valid until the next add(). 0 <= i < num_pieces(), in order of the first add().
  std::string_view piece(std::size_t i) const {
    return {bytes_.data() + entries_[i].offset, entries_[i].length};
  }
  std::int64_t count(std::size_t i) const { return entries_[i].count; }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  struct Entry {
    std::uint64_t hash;
    std::size_t offset;  // in bytes_
    std::size_t length;
    std::int64_t count;
  };

  std::size_t place_of(std::string_view piece, std::uint64_t hash) const;
  void grow();

  std::vector<char> bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(1024, kFree);  // of entries
};

}  // namespace redspine
