#include "parallel/mesh/tensor_parallel.h"

namespace redspine {
namespace {

TensorView as_rows(TensorView x) { return x.reshape({x.rows(), x.cols()}); }

}  // namespace

void detail::add_up(const ProcessMesh& mesh, TensorView x, std::span<const Range> row_shares) {
  Communicator& ranks = mesh.along(Axis::tensor);
  if (row_shares.empty()) return ranks.all_reduce(x, ReduceOp::sum, Stream::activations);
  ranks.reduce_scatter(as_rows(x), row_shares, ReduceOp::sum, Stream::activations);
}

void detail::add_up_in_order(const ProcessMesh& mesh, TensorView out,
                             std::vector<ConstTensorView> summands, const SumOrder& order,
                             std::span<const Range> row_shares) {
  Communicator& ranks = mesh.along(Axis::tensor);
  if (row_shares.empty()) {
    return ranks.all_reduce_in_order(out, std::move(summands), order, Stream::activations);
  }
  ranks.reduce_scatter_in_order(as_rows(out), std::move(summands), row_shares, order,
                                Stream::activations);
}

void all_reduce_in_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                                 ReduceOp op) {
  device.order(Stream::compute, Stream::activations);
  mesh.along(Axis::tensor).all_reduce(x, op, Stream::activations);
  device.order(Stream::activations, Stream::compute);
}

void reduce_from_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                               std::span<const Range> row_shares) {
  device.order(Stream::compute, Stream::activations);
  detail::add_up(mesh, x, row_shares);
  device.order(Stream::activations, Stream::compute);
}

void begin_gather(Device& device, const ProcessMesh& mesh, TensorView x,
                  std::span<const Range> row_shares) {
  if (row_shares.empty()) return;
  device.order(Stream::compute, Stream::activations);
  mesh.along(Axis::tensor).all_gather(as_rows(x), row_shares, Stream::activations);
}

void gather_to_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                             std::span<const Range> row_shares) {
  if (row_shares.empty()) return;
  begin_gather(device, mesh, x, row_shares);
  device.order(Stream::activations, Stream::compute);
}

}  // namespace redspine
