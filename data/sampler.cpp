#include "data/sampler.h"

#include <algorithm>
#include <cassert>

#include "data/permutation.h"
#include "tensor/philox.h"

namespace redspine {
namespace {

std::vector<double> weights_of(const std::vector<SampleSource>& sources) {
  std::vector<double> weights;
  weights.reserve(sources.size());
  for (const SampleSource& source : sources) weights.push_back(source.weight);
  return weights;
}

// Tells this use of the seed from those of other folders.
constexpr std::uint64_t kSampleOrder = 0x73616D706C6573u;

std::uint64_t order_key(std::uint64_t seed, int entry, std::int64_t epoch) {
  const std::uint64_t entry_key =
      random_key(random_key(seed, kSampleOrder), static_cast<std::uint64_t>(entry));
  return random_key(entry_key, static_cast<std::uint64_t>(epoch));
}

}  // namespace

Sampler::Sampler(const std::vector<SampleSource>& sources, std::uint64_t seed)
    : blend_(weights_of(sources)), seed_(seed) {
  for (const SampleSource& source : sources) {
    std::int64_t end = 0;
    std::vector<std::int64_t>& ends = file_ends_.emplace_back();
    for (const std::int64_t num_windows : source.num_windows) ends.push_back(end += num_windows);
    assert(end > 0);
  }
}

std::int64_t Sampler::num_windows() const {
  std::int64_t num_windows = 0;
  for (const std::vector<std::int64_t>& ends : file_ends_) num_windows += ends.back();
  return num_windows;
}

SampleLocation Sampler::next() {
  const Blend::Pick pick = blend_.next();
  const std::vector<std::int64_t>& ends = file_ends_[static_cast<std::size_t>(pick.entry)];
  const std::int64_t num_windows = ends.back();
  const Permutation order(num_windows, order_key(seed_, pick.entry, pick.index / num_windows));
  const std::int64_t window = order(pick.index % num_windows);
  const auto file = std::upper_bound(ends.begin(), ends.end(), window);
  const std::int64_t file_begin = file == ends.begin() ? 0 : *(file - 1);
  return {pick.entry, static_cast<int>(file - ends.begin()), window - file_begin};
}

}  // namespace redspine
