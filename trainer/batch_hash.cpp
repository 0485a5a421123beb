#include "trainer/batch_hash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "parallel/group/failure.h"

namespace redspine {
namespace {

constexpr int kPartBits = 22;

}  // namespace

HashParts parts_of(std::uint64_t hash) {
  HashParts parts;
  for (double& part : parts) {
    part = static_cast<double>(hash & ((std::uint64_t{1} << kPartBits) - 1));
    hash >>= kPartBits;
  }
  return parts;
}

std::uint64_t hash_of(std::span<const double, kNumHashParts> sums) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kNumHashParts; ++i) {
    hash += static_cast<std::uint64_t>(sums[i]) << (kPartBits * i);
  }
  return hash;
}

HashMoments moments_of(std::uint64_t hash) {
  const HashParts parts = parts_of(hash);
  HashMoments moments;
  for (std::size_t i = 0; i < kNumHashParts; ++i) {
    moments[i] = parts[i];
    moments[kNumHashParts + i] = parts[i] * parts[i];
  }
  return moments;
}

// By Cauchy and Schwarz, n * (sum of squares) is at least the square of the sum, and equal to it
// for equal numbers alone.
bool are_equal(std::span<const double, 2 * kNumHashParts> sums, int num_ranks) {
  for (std::size_t i = 0; i < kNumHashParts; ++i) {
    const auto sum = static_cast<std::uint64_t>(sums[i]);
    const auto squares = static_cast<std::uint64_t>(sums[kNumHashParts + i]);
    if (static_cast<std::uint64_t>(num_ranks) * squares != sum * sum) return false;
  }
  return true;
}

void fail_for_unequal_hashes(const ProcessMesh& mesh, std::uint64_t mine, const std::string& when) {
  const ProcessGroup& world = mesh.world();
  const auto group_size = static_cast<std::size_t>(mesh.group(Axis::tensor).size());
  const std::vector<std::string> hashes = world.all_gather(fmt::format("{:016x}", mine));
  const std::vector<std::string> hosts = world.all_gather(ProcessGroup::host_name());
  for (std::size_t first = 0; first < hashes.size(); first += group_size) {
    std::vector<std::string> ranks;
    for (std::size_t rank = first; rank < first + group_size; ++rank) {
      ranks.push_back(fmt::format("{} on rank {} @ {}", hashes[rank], rank, hosts[rank]));
    }
    const auto begin = hashes.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::all_of(begin, begin + static_cast<std::ptrdiff_t>(group_size),
                    [&](const std::string& hash) { return hash == *begin; })) {
      continue;
    }
    throw CollectiveError(
        fmt::format("{}: ranks that share a model read different tokens: batch hash {}; the token "
                    "files of these hosts differ, or changed during the run",
                    when, fmt::join(ranks, ", ")));
  }
  throw CollectiveError(when + ": ranks that share a model read different tokens");
}

}  // namespace redspine
