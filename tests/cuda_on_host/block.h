// One block of CUDA threads at a time: who runs, who waits for whom, and what is a fault.
//
// Each thread runs until it blocks, in an order that the seed decides. The barrier and the warp
// collectives let their participants go on when the last has come. A participant that cannot come
// any more, or that comes to another call, is a fault with the names of kernel, block and thread.
// All of this happens in the one OS thread that plays the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "tests/cuda_on_host/vector_types.h"

namespace on_host {

/// A line of a kernel; as a default argument, that of the call.
struct Place {
  const char* file = "";
  int line = 0;

  static constexpr Place current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// A kernel that did what no kernel may do.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Grid {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  const void* kernel;  // for its name
};

/// Runs `thread_body` once for each thread of each block. Throws KernelFault.
void run_grid(const Grid& grid, const std::function<void()>& thread_body, std::uint64_t seed);

/// Of a block: what CUDA gives every kernel, and no kernel here asks for more.
inline constexpr std::size_t kMaxSharedBytes = std::size_t{48} << 10;

enum class WarpCall { sync, shuffle, shuffle_xor, ballot };

struct WarpRequest {
  WarpCall call;
  unsigned mask;
  std::uint64_t value = 0;
  int operand = 0;  // of a shuffle: the lane or the mask
  int width = 32;
  Place place;
};

/// Calls of the running thread.
void block_barrier(Place place);
std::uint64_t warp_collective(const WarpRequest& request);

}  // namespace on_host
