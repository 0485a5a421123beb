#include "data/permutation.h"

#include <bit>
#include <cassert>
#include <utility>

#include "tensor/philox.h"

namespace redspine {
namespace {

constexpr std::uint32_t kNumRounds = 8;  // even: the unequal halves end where they began

constexpr std::uint64_t mask(int num_bits) { return (std::uint64_t{1} << num_bits) - 1; }

std::uint64_t round_function(std::uint64_t key, std::uint32_t round, std::uint64_t half) {
  const PhiloxCounter random = philox4x32(
      key, {static_cast<std::uint32_t>(half), static_cast<std::uint32_t>(half >> 32), round, 0});
  return (std::uint64_t{random[1]} << 32) | random[0];
}

}  // namespace

Permutation::Permutation(std::int64_t n, std::uint64_t key)
    : n_(static_cast<std::uint64_t>(n)), key_(key) {
  assert(n >= 1 && n <= std::int64_t{1} << 62);
  const int num_bits = 64 - std::countl_zero(n_ - 1);
  num_left_bits_ = num_bits / 2;
  num_right_bits_ = num_bits - num_left_bits_;
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  assert(position >= 0 && static_cast<std::uint64_t>(position) < n_);
  // Ends: the orbit of `position` leads back to it, so it leads into [0, n) before.
  std::uint64_t value = encrypt(static_cast<std::uint64_t>(position));
  while (value >= n_) value = encrypt(value);
  return static_cast<std::int64_t>(value);
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value >> num_right_bits_;
  std::uint64_t right = value & mask(num_right_bits_);
  std::uint64_t left_mask = mask(num_left_bits_);
  std::uint64_t right_mask = mask(num_right_bits_);
  for (std::uint32_t round = 0; round < kNumRounds; ++round) {
    left = (left ^ round_function(key_, round, right)) & left_mask;
    std::swap(left, right);
    std::swap(left_mask, right_mask);
  }
  return left << num_right_bits_ | right;
}

}  // namespace redspine
