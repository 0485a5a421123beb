// What enters and leaves a region of the model that is split over the tensor axis, in the terms of
// Megatron-LM (Shoeybi et al., https://arxiv.org/abs/1909.08053, figure 3: f and g). A value that
// is copied to a region is the same on all ranks and has a gradient that is their sum; one that is
// reduced from it is their sum and has a gradient that is the same on all. So each has one pass
// that does nothing, for which there is no function here.
//
// Collective over the tensor axis. Values come from the compute stream and, unless a function says
// otherwise, are there for what the compute stream is given next.
#pragma once

#include "parallel/mesh/process_mesh.h"
#include "tensor/device.h"

namespace redspine {

/// `x` reduced over the tensor axis, in place: in a region's midst, where both passes need the
/// result as it is.
void all_reduce_in_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                                 ReduceOp op);

/// The forward pass of what is reduced from a region: `x` summed over the tensor axis, in place.
void reduce_from_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x);

/// Exact mode's sum over the tensor axis: `out` in an order that the split does not enter
/// (Communicator::all_reduce_in_order), beneath the work that `meanwhile()` gives to the compute
/// stream.
template <class Work>
void reduce_in_order(Device& device, const ProcessMesh& mesh, TensorView out,
                     std::vector<ConstTensorView> summands, const SumOrder& order,
                     const Work& meanwhile) {
  device.order(Stream::compute, Stream::activations);
  mesh.along(Axis::tensor)
      .all_reduce_in_order(out, std::move(summands), order, Stream::activations);
  meanwhile();
  device.order(Stream::activations, Stream::compute);
}

/// The backward pass of what is copied to a region: `dx` summed over the tensor axis, in place.
void copy_to_tensor_region_backward(Device& device, const ProcessMesh& mesh, TensorView dx);

/// The same, beneath the work that `meanwhile()` gives to the compute stream, which must not use
/// `dx`: the gradients of the weights that `dx` came through.
template <class Work>
void copy_to_tensor_region_backward(Device& device, const ProcessMesh& mesh, TensorView dx,
                                    const Work& meanwhile) {
  device.order(Stream::compute, Stream::activations);
  mesh.along(Axis::tensor).all_reduce(dx, ReduceOp::sum, Stream::activations);
  meanwhile();
  device.order(Stream::activations, Stream::compute);
}

}  // namespace redspine
