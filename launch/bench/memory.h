// How fast memory and other ranks are: a copy, the optimizer's stream, and sums over each axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/mesh/process_mesh.h"
#include "tensor/device.h"

namespace redspine {

/// Bytes per second that are read and written, the best of some rounds. Local.
struct StreamRates {
  double copy;   // 2 bytes for each byte copied
  double adamw;  // 28 bytes for each parameter

  double best() const { return std::max(copy, adamw); }
};
StreamRates measure_streams(Device& device);

struct CollectiveTime {
  Axis axis;
  std::int64_t bytes;
  double seconds;       // of an all-reduce, the median of some rounds, on the slowest rank
  double copy_seconds;  // of a copy of as many bytes on the device, by every rank at once
  // Of a copy of what another rank of the host has just written, by every rank at once: the least
  // that an exchange takes. Not on a GPU, between hosts, or without the memory to share.
  std::optional<double> exchange_seconds;
};
inline constexpr std::int64_t kLeastCollectiveBytes = 1'024;
inline constexpr std::int64_t kMostCollectiveBytes = 500'000'000;
/// For sizes from the least to `most_bytes`, on each axis of more than one rank. Takes two buffers
/// of the largest. Collective over the world.
std::vector<CollectiveTime> measure_collectives(const ProcessMesh& mesh, Device& device,
                                                std::int64_t most_bytes);

}  // namespace redspine
