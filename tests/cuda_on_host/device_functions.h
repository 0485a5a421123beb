// The functions that kernels call: barriers, warp collectives, atomics and arithmetic. Where CUDA
// has an approximate variant, the exact function of the host stands in.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/cuda_on_host/block.h"

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
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 on_host::Place place = on_host::Place::current()) {
  return on_host::shuffle(value, {.call = on_host::WarpCall::shuffle_up,
                                  .mask = mask,
                                  .operand = static_cast<int>(distance),
                                  .width = width,
                                  .place = place});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   on_host::Place place = on_host::Place::current()) {
  return on_host::shuffle(value, {.call = on_host::WarpCall::shuffle_down,
                                  .mask = mask,
                                  .operand = static_cast<int>(distance),
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
inline int __any_sync(unsigned mask, int predicate,
                      on_host::Place place = on_host::Place::current()) {
  return __ballot_sync(mask, predicate, place) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      on_host::Place place = on_host::Place::current()) {
  return __ballot_sync(mask, predicate, place) == mask;
}

inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const T before = *address;
  if (value > before) *address = value;
  return before;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(std::uint64_t{x} * y >> 32);
}
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
