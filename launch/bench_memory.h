// How fast memory and other ranks are: a copy, the optimizer's stream, and sums over each axis.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "parallel/process_mesh.h"
#include "tensor/device.h"

namespace redspine {

/// Bytes a second that are read and written, the best of some rounds. Local.
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
  double copy_seconds;  // of a copy of as many bytes on the device
};
/// For sizes from 1 KiB to 64 MiB, on each axis of more than one rank. Collective over the world.
std::vector<CollectiveTime> measure_collectives(const ProcessMesh& mesh, Device& device);

}  // namespace redspine
