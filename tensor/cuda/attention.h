// What the attention kernels share: where heads lie in packed rows, and products of tiles.
//
// A block of 16 x 16 threads works on a tile of 64 queries and 64 keys; thread (x, y) holds the
// scores of 4 x 4 of them. The head size is walked in slices, so any size fits; the columns of an
// output are cut into chunks, a block each. Everything is f32 in registers and shared memory.
// Device code; local.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/cuda/elementwise.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"
#include "tensor/cuda/vector.h"
#include "tensor/dropout.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

inline constexpr int kTile = 64;           // queries, and keys
inline constexpr int kSide = 16;           // threads along each side of a tile
inline constexpr int kMicro = 4;           // rows and columns of a tile that a thread holds
inline constexpr int kSlice = 32;          // head dims, or rows, in shared memory at once
inline constexpr int kStride = kTile + 4;  // keeps float4 aligned and neighbours in other banks
inline constexpr int kAttentionThreads = kSide * kSide;
static_assert(kSide * kMicro == kTile && 2 * kSide == kWarpSize);

/// 4 x 4 values of a tile: rows y * 4 + i, columns x * 4 + j.
using MicroTile = float[kMicro][kMicro];
/// 4 rows y * 4 + i of an output, and of each 64 columns the 4 at x * 4 + j.
template <int columns>
using MicroRows = float[kMicro][columns / kSide];

template <int columns>
struct AttentionShared {
  union {
    struct {
      float a[kSlice][kStride];  // [head dim][row]
      float b[kSlice][kStride];
    } slices;
    float rows[kSlice][columns];  // [row][column]
  };
  float tile[kTile][kStride];  // [what is summed over][row]
};

/// Rows [0, count) of a tile, whose other rows do not exist.
template <class T>
struct RowTile {
  T* data;
  std::int64_t stride;
  int count;

  __device__ T* row(int r) const { return data + r * stride; }
};

/// The rows of one head of one sample.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  std::int64_t length;

  __device__ RowTile<T> tile(std::int64_t first) const {
    return {data + first * stride, stride,
            static_cast<int>(min(std::int64_t{kTile}, length - first))};
  }
};

/// Columns [first, first + columns) of a head of `head_size`, where they exist.
struct ColumnChunk {
  std::int64_t first;
  std::int64_t head_size;
};

/// Finds heads in packed rows, for device code; see PackedHeads of the CPU.
struct HeadGeometry : HeadLayout {
  std::int64_t length;
  float score_scale;

  HeadGeometry(const HeadLayout& heads, std::int64_t sequence_length);

  template <class T>
  __device__ HeadRows<T> query(T* qkv, std::int64_t sample, std::int64_t head) const {
    return packed(qkv, sample, head);
  }
  template <class T>
  __device__ HeadRows<T> key(T* qkv, std::int64_t sample, std::int64_t kv_head) const {
    return packed(qkv, sample, num_heads + kv_head);
  }
  template <class T>
  __device__ HeadRows<T> value(T* qkv, std::int64_t sample, std::int64_t kv_head) const {
    return packed(qkv, sample, num_heads + num_kv_heads + kv_head);
  }
  template <class T>
  __device__ HeadRows<T> context(T* context, std::int64_t sample, std::int64_t head) const {
    const std::int64_t stride = num_heads * head_size;
    return {context + sample * length * stride + head * head_size, stride, length};
  }
  /// Offset of query 0 in [B, h, T] statistics.
  __device__ std::int64_t statistics(std::int64_t sample, std::int64_t head) const {
    return (sample * num_heads + head) * length;
  }

 private:
  template <class T>
  __device__ HeadRows<T> packed(T* qkv, std::int64_t sample, std::int64_t place) const {
    const std::int64_t stride = (num_heads + 2 * num_kv_heads) * head_size;
    return {qkv + sample * length * stride + place * head_size, stride, length};
  }
};

/// Where this thread's part of a tile begins.
__device__ inline int micro_row() { return static_cast<int>(threadIdx.x) / kSide * kMicro; }
__device__ inline int micro_column() { return static_cast<int>(threadIdx.x) % kSide * kMicro; }

/// Brings head dims [dim, dim + kSlice) of a tile's rows to shared memory, transposed; 0 where
/// there are none. Neighbouring threads take neighbouring rows: their stores meet in no bank.
template <int width, class T>
__device__ void load_slice(float (&to)[kSlice][kStride], const RowTile<const T>& from,
                           std::int64_t dim, std::int64_t head_size) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kSlice / width; i += kAttentionThreads) {
    const int row = i % kTile;
    const int d = i / kTile * width;
    Floats<width> v{};
    if (row < from.count && dim + d < head_size) v = load<width>(from.row(row) + dim + d);
#pragma unroll
    for (int j = 0; j < width; ++j) to[d + j][row] = v.values[j];
  }
}

/// product = A B^T, summed over the head size. All threads of the block call it; the slices in
/// shared memory are free again when it returns.
template <int width, int columns, class T>
__device__ void multiply_rows(MicroTile& product, AttentionShared<columns>& shared,
                              const RowTile<const T>& a, const RowTile<const T>& b,
                              std::int64_t head_size) {
  const int row = micro_row();
  const int column = micro_column();
#pragma unroll
  for (int i = 0; i < kMicro; ++i) {
#pragma unroll
    for (int j = 0; j < kMicro; ++j) product[i][j] = 0.0F;
  }
  for (std::int64_t dim = 0; dim < head_size; dim += kSlice) {
    load_slice<width>(shared.slices.a, a, dim, head_size);
    load_slice<width>(shared.slices.b, b, dim, head_size);
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < kSlice; ++d) {
      const Floats<kMicro> left = load<kMicro>(&shared.slices.a[d][row]);
      const Floats<kMicro> right = load<kMicro>(&shared.slices.b[d][column]);
#pragma unroll
      for (int i = 0; i < kMicro; ++i) {
#pragma unroll
        for (int j = 0; j < kMicro; ++j) product[i][j] += left.values[i] * right.values[j];
      }
    }
    __syncthreads();
  }
}

/// sum[r] += the sum over i of shared.tile[i][r] * rows[i], in the columns of the chunk. All
/// threads of the block call it, each with its part of the tile written; shared memory is free
/// again when it returns.
template <int width, int columns, class T>
__device__ void accumulate_rows(MicroRows<columns>& sum, AttentionShared<columns>& shared,
                                const RowTile<const T>& rows, const ColumnChunk& chunk) {
  const int row = micro_row();
  const int column = micro_column();
  for (int begin = 0; begin < rows.count; begin += kSlice) {
    for (int i = static_cast<int>(threadIdx.x) * width; i < kSlice * columns;
         i += kAttentionThreads * width) {
      const int from = begin + i / columns;
      const std::int64_t c = chunk.first + i % columns;
      Floats<width> v{};
      if (from < rows.count && c < chunk.head_size) v = load<width>(rows.row(from) + c);
      store(&shared.rows[i / columns][i % columns], v);
    }
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kSlice; ++i) {
      const Floats<kMicro> left = load<kMicro>(&shared.tile[begin + i][row]);
#pragma unroll
      for (int group = 0; group < columns / kTile; ++group) {
        const Floats<kMicro> right = load<kMicro>(&shared.rows[i][group * kTile + column]);
#pragma unroll
        for (int r = 0; r < kMicro; ++r) {
#pragma unroll
          for (int j = 0; j < kMicro; ++j) {
            sum[r][group * kMicro + j] += left.values[r] * right.values[j];
          }
        }
      }
    }
    __syncthreads();
  }
}

/// Writes what accumulate_rows has summed.
template <int width, int columns, class T>
__device__ void store_rows(const RowTile<T>& to, const MicroRows<columns>& sum,
                           const ColumnChunk& chunk) {
#pragma unroll
  for (int r = 0; r < kMicro; ++r) {
    if (micro_row() + r >= to.count) continue;
    T* row = to.row(micro_row() + r);
#pragma unroll
    for (int group = 0; group < columns / kTile; ++group) {
      const int column = group * kTile + micro_column();
      const std::int64_t c = chunk.first + column;
      if constexpr (width % kMicro == 0) {
        Floats<kMicro> values;
#pragma unroll
        for (int j = 0; j < kMicro; ++j) values.values[j] = sum[r][group * kMicro + j];
        if (c < chunk.head_size) store(row + c, values);
      } else {
#pragma unroll
        for (int j = 0; j < kMicro; ++j) {
          if (c + j < chunk.head_size) row[c + j] = narrow<T>(sum[r][group * kMicro + j]);
        }
      }
    }
  }
}

/// What dropout multiplies the probabilities of `query` and of the 4 keys from `key` on by; `key`
/// is a multiple of 4.
__device__ inline Floats<4> score_factors(const DropoutRule& rule, const ScoreCounters& counters,
                                          std::int64_t query, std::int64_t key) {
  const PhiloxCounter bits = philox4x32(rule.key, counters.at(query, key));
  Floats<4> factors;
#pragma unroll
  for (std::size_t j = 0; j < 4; ++j) factors.values[j] = rule.factor(bits[j]);
  return factors;
}

/// The blocks of an attention kernel: tiles along the sequence, heads times chunks of their
/// columns, and sequences.
template <int columns>
LaunchShape attention_blocks(const HeadLayout& heads, std::int64_t num_heads, ConstTensorView qkv) {
  const std::int64_t num_chunks = divide_up(heads.head_size, columns);
  return {dim3(static_cast<unsigned>(divide_up(qkv.dim(1), kTile)),
               static_cast<unsigned>(num_heads * num_chunks), static_cast<unsigned>(qkv.dim(0))),
          kAttentionThreads, sizeof(AttentionShared<columns>)};
}

/// body.operator()<T, width, columns>() for an operation on these views.
template <class Body, class... Views>
void with_attention_kernel(const HeadLayout& heads, DType dtype, const Body& body,
                           const Views&... views) {
  with_type(dtype, [&]<class T>() {
    with_width<T>(access_to_rows<T>(heads.head_size, views...), [&]<int width>() {
      if (heads.head_size <= kTile) {
        body.template operator()<T, width, kTile>();
      } else {
        body.template operator()<T, width, 2 * kTile>();
      }
    });
  });
}

}  // namespace redspine::cuda
