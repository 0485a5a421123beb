#include "parallel/gradient_norm.h"

#include <cmath>

#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {

double global_gradient_norm(Device& device, std::span<const ConstTensorView> owned,
                            const RankGroup& tensor) {
  const Tensor sum(device, DType::f64, {1});
  for (const ConstTensorView& gradient : owned) {
    ops::run(device, SumOfSquares{.sum = sum, .x = gradient});
  }
  double sum_of_squares = 0.0;
  device.download(host_view(std::span<double>(&sum_of_squares, 1)), sum);
  return std::sqrt(tensor.all_reduce(sum_of_squares, ReduceOp::sum));
}

}  // namespace redspine
