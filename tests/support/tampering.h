// Checkpoints that somebody, or a disk in league with them, has changed so that their hashes still
// tell nothing. Local.
#pragma once

#include <cstdint>
#include <string>

namespace redspine::testing {

/// Moves one element of a tensor to the next number, and writes its new hash into the manifest.
void change_by_one_ulp(const std::string& directory, const std::string& tensor,
                       std::int64_t element);
/// Writes into training.json what the digests of the weights are now, and its hash into the
/// manifest.
void record_digests_anew(const std::string& directory);
/// Writes a training.json without digests, as earlier versions did, and its hash.
void forget_digests(const std::string& directory);

}  // namespace redspine::testing
