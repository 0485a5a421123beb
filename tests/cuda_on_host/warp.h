// What is known of a CUDA thread and of its warp while a block runs, and how a shuffle finds the
// lane that it reads from.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/fiber.h"

namespace on_host {

struct Thread {
  uint3 index{};
  Fiber* fiber = nullptr;  // that it started in
  Place place;             // where it waits
  WarpRequest request{};   // its latest collective
  std::uint64_t result = 0;
};

/// Sets of lanes, a bit each; every existing lane that does not run is in one of the last five.
struct Warp {
  unsigned existing = 0;
  unsigned not_started = 0;
  unsigned runnable = 0;
  unsigned at_barrier = 0;
  unsigned at_call = 0;
  unsigned ended = 0;
};

/// The lane that `lane` reads from, as the PTX manual defines shfl.sync for segments of `width`.
unsigned source_lane(const WarpRequest& request, unsigned lane);

bool same_place(const Place& a, const Place& b);
bool same_call(const WarpRequest& a, const WarpRequest& b);

std::string to_string(const Place& place);
std::string to_string(const uint3& index);
/// "__shfl_sync of file.cu:12".
std::string to_string(const WarpRequest& request);

}  // namespace on_host
