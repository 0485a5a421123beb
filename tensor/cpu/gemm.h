// Matrix products in f32, near the peak of the vector units: panels of both operands are packed
// into blocks for the caches, and a tile of the output stays in registers for a whole block of the
// inner dim (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
//
// Every element is summed in an order that depends on the inner dim alone, or is given, and not on
// the number of threads. Internal to tensor/cpu; local; the OpenMP team of the calling thread
// shares the output.
#pragma once

#include <cstdint>

#include "tensor/kernels.h"

namespace redspine {

/// Element (i, k) of one side of a product, i along the output and k along the inner dim, is
/// data[i * stride + k * inner_stride]. One of the strides is 1.
struct GemmOperand {
  const float* data;
  std::int64_t stride;
  std::int64_t inner_stride;
};

/// A rectangle of the output.
struct GemmTile {
  std::int64_t row;
  std::int64_t col;
  std::int64_t num_rows;
  std::int64_t num_cols;
};

/// What is to be done with each part of the output once it is complete, while it is in the cache.
/// Called by any thread, once for each element.
class GemmEpilogue {
 public:
  virtual ~GemmEpilogue() = default;
  virtual void finish(const GemmTile& tile) const = 0;
};

struct Gemm {
  float* out;  // [m, n], rows `out_stride` apart
  std::int64_t out_stride;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  GemmOperand a;  // m along the output
  GemmOperand b;  // n along the output
  Update update = Update::write;
  const float* bias = nullptr;             // [n], added to each row, or null
  const GemmEpilogue* epilogue = nullptr;  // null for none
  const InnerOrder* order = nullptr;  // the order of the sums; null: the inner dim as one piece
};

/// out = A B^T (+ bias) (+ out), by the calling thread's OpenMP team. With an order whose
/// `num_sums` is more than 1, `out` is so many matrices, m rows after one another; it knows no
/// bias, epilogue or accumulation then.
void multiply(const Gemm& gemm);

}  // namespace redspine
