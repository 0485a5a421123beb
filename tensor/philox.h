// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011). A number is a pure function of (key, counter), so no generator state exists
// that a checkpoint would have to save, and no number depends on a rank or on a layout.
#pragma once

#include <array>
#include <cstdint>

namespace redspine {

using PhiloxCounter = std::array<std::uint32_t, 4>;

/// The four 32-bit numbers at `counter` of the stream `key`.
constexpr PhiloxCounter philox4x32(std::uint64_t key, PhiloxCounter counter) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// A bijective mix of 64 bits (the finalizer of SplitMix64; Steele et al., OOPSLA 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The key of one purpose (a parameter, a dropout site, a file's order) under a run's seed.
constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t purpose) {
  return mix64(mix64(seed) ^ purpose);
}

}  // namespace redspine
