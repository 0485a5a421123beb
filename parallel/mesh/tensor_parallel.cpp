#include "parallel/mesh/tensor_parallel.h"

namespace redspine {

void all_reduce_in_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                                 ReduceOp op) {
  device.order(Stream::compute, Stream::activations);
  mesh.along(Axis::tensor).all_reduce(x, op, Stream::activations);
  device.order(Stream::activations, Stream::compute);
}

void reduce_from_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x) {
  all_reduce_in_tensor_region(device, mesh, x, ReduceOp::sum);
}

void copy_to_tensor_region_backward(Device& device, const ProcessMesh& mesh, TensorView dx) {
  copy_to_tensor_region_backward(device, mesh, dx, [] {});
}

}  // namespace redspine
