// What enters and leaves a region of the model that is split over the tensor axis, in the terms of
// Megatron-LM (Shoeybi et al., https://arxiv.org/abs/1909.08053, figure 3: f and g). A value that
// is copied to a region is the same on all ranks and has a gradient that is their sum; one that is
// reduced from it is their sum and has a gradient that is the same on all. So each has one pass
// that does nothing, for which there is no function here.
//
// With sequence parallelism (Korthikanti et al., https://arxiv.org/abs/2205.05198, figure 5: g and
// g-bar) a rank has only some of the rows outside of regions. Rows are gathered on the way in, and
// each rank gets its own of a sum: `row_shares`, [tensor rank], as ranges of the rows that a matrix
// of all rows has. No shares: every rank has all rows.
//
// Collective over the tensor axis. Values come from the compute stream and, unless a function says
// otherwise, are there for what the compute stream is given next.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "parallel/mesh/process_mesh.h"
#include "parallel/partition.h"
#include "tensor/device.h"

namespace redspine {

/// `x` reduced over the tensor axis, in place: in a region's midst, where both passes need the
/// result as it is.
void all_reduce_in_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                                 ReduceOp op);

/// The forward pass of what is reduced from a region: `x` summed over the tensor axis, in place.
/// With shares, this rank's rows of it, and the others hold nothing of use.
void reduce_from_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                               std::span<const Range> row_shares = {});

/// Starts to bring the rows of `x` that other ranks have, of which this rank has written its own:
/// the forward pass of what is copied to a region, and the backward pass of what is reduced from
/// it. They are there once the compute stream has waited for `activations`. Nothing without shares.
void begin_gather(Device& device, const ProcessMesh& mesh, TensorView x,
                  std::span<const Range> row_shares);
/// The same, and waits.
void gather_to_tensor_region(Device& device, const ProcessMesh& mesh, TensorView x,
                             std::span<const Range> row_shares);

namespace detail {

void add_up(const ProcessMesh& mesh, TensorView x, std::span<const Range> row_shares);
void add_up_in_order(const ProcessMesh& mesh, TensorView out, std::vector<ConstTensorView> summands,
                     const SumOrder& order, std::span<const Range> row_shares);

}  // namespace detail

/// Exact mode's sum over the tensor axis: `out` in an order that the split does not enter
/// (Communicator::all_reduce_in_order), beneath the work that `meanwhile()` gives to the compute
/// stream. With shares, this rank's rows of it.
template <class Work>
void reduce_in_order(Device& device, const ProcessMesh& mesh, TensorView out,
                     std::vector<ConstTensorView> summands, const SumOrder& order,
                     std::span<const Range> row_shares, const Work& meanwhile) {
  device.order(Stream::compute, Stream::activations);
  detail::add_up_in_order(mesh, out, std::move(summands), order, row_shares);
  meanwhile();
  device.order(Stream::activations, Stream::compute);
}

/// The backward pass of what is copied to a region: `dx` summed over the tensor axis, in place,
/// beneath the work that `meanwhile()` gives to the compute stream, which must not use `dx`: the
/// gradients of the weights that `dx` came through. With shares, this rank's rows of it.
template <class Work>
void copy_to_tensor_region_backward(Device& device, const ProcessMesh& mesh, TensorView dx,
                                    std::span<const Range> row_shares, const Work& meanwhile) {
  device.order(Stream::compute, Stream::activations);
  detail::add_up(mesh, dx, row_shares);
  meanwhile();
  device.order(Stream::activations, Stream::compute);
}

}  // namespace redspine
