// Where each sample of a run lies: global sample index -> (entry, file, window).
//
// A pure function of the weights, the number of windows of each file and the seed, so a run's
// data state is one integer. The blend picks the entry; the entry's own counter is its epoch and
// its place in an order of all its windows that is new for each epoch. Holds no files, so it is
// the same arithmetic on every rank. Not safe from several threads: it remembers its position.
#pragma once

#include <cstdint>
#include <vector>

#include "data/blend.h"

namespace redspine {

/// One entry of a blend.
struct SampleSource {
  double weight;
  std::vector<std::int64_t> num_windows;  // [file]; at least one is above 0
};

struct SampleLocation {
  int entry;
  int file;             // of the entry
  std::int64_t window;  // of the file
};

class Sampler {
 public:
  /// Starts at sample 0.
  Sampler(const std::vector<SampleSource>& sources, std::uint64_t seed);

  /// Where the present sample lies; steps to the next one.
  SampleLocation next();
  /// Makes `sample` the present one, in bounded time (blend.h).
  void seek(std::int64_t sample) { blend_.seek(sample); }
  std::int64_t num_windows() const;  // different samples, over all entries

 private:
  Blend blend_;
  std::vector<std::vector<std::int64_t>> file_ends_;  // [entry][file] windows up to its end
  std::uint64_t seed_;
};

}  // namespace redspine
