// A pseudo-random order of [0, n) that needs no memory: any position is computed by itself.
//
// A Feistel network (Luby and Rackoff, SIAM J. Comput. 17, 1988) permutes the smallest power of two
// that holds n; values outside [0, n) are walked on until one falls inside (Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Less than two walks are expected.
#pragma once

#include <cstdint>

namespace redspine {

class Permutation {
 public:
  /// Of [0, n), 1 <= n <= 2^62, in the order that `key` gives.
  Permutation(std::int64_t n, std::uint64_t key);

  /// The image of `position`: each value of [0, n) for exactly one position of [0, n).
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t n_;
  std::uint64_t key_;
  int num_left_bits_;
  int num_right_bits_;
};

}  // namespace redspine
