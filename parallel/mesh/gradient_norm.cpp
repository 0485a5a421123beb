#include "parallel/mesh/gradient_norm.h"

#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {

double sum_of_squares(Device& device, std::span<const ConstTensorView> owned) {
  Tensor sum(device, DType::f64, {1});
  ops::run(device, SumOfSquares{.sum = sum, .parts = owned});
  double result = 0.0;
  device.download(host_view(std::span<double>(&result, 1)), sum);
  return result;
}

ExactSum exact_sum_of_squares(Device& device, std::span<const SquaresPart> owned) {
  Tensor sum(device, DType::i64, {ExactSum::kNumValues});
  ops::run(device, ExactSumOfSquares{.sum = sum, .parts = owned});
  std::array<std::int64_t, ExactSum::kNumValues> values{};
  device.download(host_view(std::span<std::int64_t>(values)), sum);
  return ExactSum(values);
}

}  // namespace redspine
