#include "trainer/digest/replica_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "parallel/group/failure.h"
#include "tensor/printable.h"
#include "trainer/digest/named_ranks.h"

namespace redspine {
namespace {

// One part on one rank, as it is sent to the others.
struct Entry {
  std::uint64_t parameter;
  Range elements;  // from the index of its first one in the whole parameter; as many as it has
  Digest digest;
};

using PartName = std::tuple<std::uint64_t, std::int64_t, std::int64_t>;
using RanksOfDigest = std::map<std::string, std::vector<int>>;

// What each rank holds: by part, the ranks that have each digest.
std::map<PartName, RanksOfDigest> collect(const std::vector<std::string>& messages) {
  std::map<PartName, RanksOfDigest> parts;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    std::vector<Entry> entries(messages[rank].size() / sizeof(Entry));
    if (messages[rank].empty()) continue;
    std::memcpy(entries.data(), messages[rank].data(), messages[rank].size());
    for (const Entry& entry : entries) {
      parts[{entry.parameter, entry.elements.begin, entry.elements.end}][entry.digest.text()]
          .push_back(static_cast<int>(rank));
    }
  }
  return parts;
}

// Those that more than half of the holders contradict with one voice; all where none is so.
std::vector<int> suspects_of(const RanksOfDigest& ranks) {
  std::size_t num_holders = 0;
  for (const auto& [digest, holders] : ranks) num_holders += holders.size();
  std::vector<int> suspects;
  for (const auto& [digest, holders] : ranks) {
    if (2 * holders.size() > num_holders) continue;
    suspects.insert(suspects.end(), holders.begin(), holders.end());
  }
  return suspects;
}

}  // namespace

ReplicaCheck::ReplicaCheck(const ReplicaGroups& groups, const ParameterStore& store,
                           const std::vector<HeldPart>& parts, bool compares)
    : groups_(groups), store_(store), parts_(parts), compares_(compares) {}

ReplicaCheck::Sums ReplicaCheck::sums_of(std::span<const Digest> digests, Scope scope) const {
  assert(digests.size() == parts_.size());
  // What n ranks hold counts n times among what is held, and n times by its owner: where all have
  // the same bits, the difference is none.
  Sums sums;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const HeldPart& part = parts_[i];
    if (scope == Scope::updated && !part.is_updated) continue;
    if (part.is_owned) sums.owned += digests[i];
    if (part.num_holders == 1) continue;
    sums.surplus += digests[i];
    if (!part.is_owned) continue;
    sums.surplus += (0 - static_cast<std::uint64_t>(part.num_holders)) * digests[i];
  }
  std::array<std::uint64_t, 4> halves = {sums.owned.low, sums.owned.high, sums.surplus.low,
                                         sums.surplus.high};
  groups_.tensor.sum(halves);
  return {.owned = {halves[0], halves[1]}, .surplus = {halves[2], halves[3]}};
}

Digest ReplicaCheck::whole(std::span<const Digest> digests, const std::string& what) const {
  const auto [whole, surplus] = sums_of(digests, Scope::all);
  if (!compares_) return whole;

  // The largest and, negated, the smallest of each quarter; and whether a tensor group disagrees.
  constexpr std::size_t kNumQuarters = 4;
  std::array<double, 2 * kNumQuarters + 1> largest{};
  for (std::size_t q = 0; q < kNumQuarters; ++q) {
    const std::uint64_t half = q < 2 ? whole.low : whole.high;
    largest[q] = static_cast<double>(static_cast<std::uint32_t>(half >> (32 * (q % 2))));
    largest[kNumQuarters + q] = -largest[q];
  }
  largest.back() = surplus == Digest{} ? 0.0 : 1.0;
  groups_.data.all_reduce(largest, ReduceOp::max);
  bool is_equal = largest.back() == 0.0;
  for (std::size_t q = 0; q < kNumQuarters; ++q) {
    is_equal = is_equal && largest[q] == -largest[kNumQuarters + q];
  }
  if (!is_equal) fail(digests, what, Scope::all);
  return whole;
}

Digest ReplicaCheck::whole_of_updated(std::span<const Digest> digests,
                                      const std::string& what) const {
  if (!store_.shares().are_apart()) return whole(digests, what);
  const Sums mine = sums_of(digests, Scope::updated);
  std::array<std::uint64_t, 4> halves = {mine.owned.low, mine.owned.high, mine.surplus.low,
                                         mine.surplus.high};
  groups_.data.sum(halves);
  if (compares_ && (halves[2] != 0 || halves[3] != 0)) fail(digests, what, Scope::updated);
  return {halves[0], halves[1]};
}

void ReplicaCheck::fail(std::span<const Digest> digests, const std::string& what,
                        Scope scope) const {
  std::vector<Entry> mine;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const HeldPart& part = parts_[i];
    if (scope == Scope::updated && !part.is_updated) continue;
    mine.push_back({part.parameter, {part.place.first, part.place.first + part.count}, digests[i]});
  }
  const std::vector<std::string> hosts = groups_.world.all_gather(ProcessGroup::host_name());
  const auto parts = collect(groups_.world.all_gather(
      std::string(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Entry))));
  std::string first;
  std::set<std::uint64_t> tensors;
  std::set<int> suspects;
  for (const auto& [part, ranks] : parts) {
    if (ranks.size() == 1) continue;
    const std::vector<int> doubtful = suspects_of(ranks);
    suspects.insert(doubtful.begin(), doubtful.end());
    if (tensors.insert(std::get<0>(part)).second && tensors.size() == 1) {
      first = store_.parameters()[std::get<0>(part)].spec.name;
      for (const auto& [digest, holders] : ranks) {
        first +=
            fmt::format("{} {} on {}", digest == ranks.begin()->first ? " has the digest" : ",",
                        digest, name_ranks(holders, hosts));
      }
    }
  }
  std::string others;
  if (tensors.size() > 1) {
    others = fmt::format(", and {} differ{}", counted(tensors.size() - 1, "more tensor"),
                         tensors.size() == 2 ? "s" : "");
  }
  throw CollectiveError(
      fmt::format("{} of ranks that hold the same differ: {}{}; to be suspected: {}", what, first,
                  others, name_ranks(std::vector<int>(suspects.begin(), suspects.end()), hosts)));
}

}  // namespace redspine
