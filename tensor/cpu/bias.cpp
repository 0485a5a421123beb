#include "tensor/cpu/cpu_kernels.h"
#include "tensor/cpu/partition.h"

namespace redspine {

void CpuKernels::run(const AddBias& op) const {
  const std::int64_t cols = op.x.cols();
  float* x = op.x.data<float>();
  const float* bias = op.bias.data<float>();
  for_each_row(op.x.rows(), cols, [=](std::int64_t row) {
    float* x_row = x + row * cols;
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) x_row[c] += bias[c];
  });
}

void CpuKernels::run(const AddBiasBackward& op) const {
  const std::int64_t cols = op.dy.cols();
  const float* dy = op.dy.data<float>();
  add_column_sums(op.dbias.data<float>(), op.dy.rows(), cols,
                  [=](std::int64_t begin, std::int64_t end, float* partial) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      const float* dy_row = dy + row * cols;
#pragma omp simd
                      for (std::int64_t c = 0; c < cols; ++c) partial[c] += dy_row[c];
                    }
                  });
}

}  // namespace redspine
