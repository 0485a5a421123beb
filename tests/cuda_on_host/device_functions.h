// The functions that kernels call beside those of <cmath>: barriers, warp collectives, and a little
// arithmetic.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/cuda_on_host/block.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's

inline void __syncthreads(on_host::Place place = on_host::Place::current()) {
  on_host::block_barrier(place);
}

inline void __syncwarp(unsigned mask = 0xffffffffU,
                       on_host::Place place = on_host::Place::current()) {
  on_host::warp_collective({.call = on_host::WarpCall::sync, .mask = mask, .place = place});
}

namespace on_host {

template <class T>
T shuffle(T value, WarpRequest request) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "CUDA shuffles 4 or 8 bytes");
  std::memcpy(&request.value, &value, sizeof(T));
  const std::uint64_t got = warp_collective(request);
  std::memcpy(&value, &got, sizeof(T));
  return value;
}

}  // namespace on_host

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              on_host::Place place = on_host::Place::current()) {
  return on_host::shuffle(value, {.call = on_host::WarpCall::shuffle,
                                  .mask = mask,
                                  .operand = lane,
                                  .width = width,
                                  .place = place});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  on_host::Place place = on_host::Place::current()) {
  return on_host::shuffle(value, {.call = on_host::WarpCall::shuffle_xor,
                                  .mask = mask,
                                  .operand = lane_mask,
                                  .width = width,
                                  .place = place});
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              on_host::Place place = on_host::Place::current()) {
  return static_cast<unsigned>(on_host::warp_collective({.call = on_host::WarpCall::ballot,
                                                         .mask = mask,
                                                         .value = predicate != 0 ? 1U : 0U,
                                                         .place = place}));
}
inline int __popc(unsigned x) { return std::popcount(x); }
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

// NOLINTEND(bugprone-reserved-identifier)
