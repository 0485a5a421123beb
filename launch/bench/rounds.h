// Repeated measurement: the time of each round, after a first one that warms up. Local, unless what
// runs is not.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "tensor/device.h"

namespace redspine {

/// Seconds, ascending, that each of `num_rounds` calls of `run` took until the compute stream was
/// done. `prepare` comes before each and is not counted.
template <class Prepare, class Run>
std::vector<double> seconds_of_rounds(Device& device, int num_rounds, const Prepare& prepare,
                                      const Run& run) {
  std::vector<double> all;
  for (int round = 0; round <= num_rounds; ++round) {
    prepare();
    const auto start = std::chrono::steady_clock::now();
    run();
    device.synchronize(Stream::compute);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (round > 0) all.push_back(seconds.count());
  }
  std::sort(all.begin(), all.end());
  return all;
}

template <class Run>
std::vector<double> seconds_of_rounds(Device& device, int num_rounds, const Run& run) {
  return seconds_of_rounds(
      device, num_rounds, [] {}, run);
}

}  // namespace redspine
