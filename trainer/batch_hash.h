// The hash of what the ranks read, on its way through the sums of doubles that they make anyhow: as
// three parts of 22 bits, whose sums and sums of squares are exact over up to 512 ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "parallel/mesh/process_mesh.h"

namespace redspine {

inline constexpr std::size_t kNumHashParts = 3;
using HashParts = std::array<double, kNumHashParts>;

HashParts parts_of(std::uint64_t hash);
/// From parts added up over ranks: the sum of their hashes modulo 2^64.
std::uint64_t hash_of(std::span<const double, kNumHashParts> sums);

/// The parts and their squares.
using HashMoments = std::array<double, 2 * kNumHashParts>;
HashMoments moments_of(std::uint64_t hash);
/// From moments added up over `num_ranks`: whether all of them have the same hash.
bool are_equal(std::span<const double, 2 * kNumHashParts> sums, int num_ranks);

/// Collective over the world; throws CollectiveError. Names the ranks of a tensor group whose
/// hashes differ, with what each of them (`mine`) has read `when`, such as "step 12".
[[noreturn]] void fail_for_unequal_hashes(const ProcessMesh& mesh, std::uint64_t mine,
                                          const std::string& when);

}  // namespace redspine
