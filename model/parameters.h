// The parameters of a model: what layers declare, and the two flat buffers (values and gradients)
// that hold them, in f32. Layers that compute in bf16 read a working copy of the values, which the
// optimizer keeps up to date. The gradients of a block lie side by side, in one bucket, so that
// they are added up by one collective. Local; a rank holds its share only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/parameter_shares.h"
#include "parallel/mesh/gradient_reducer.h"
#include "parallel/mesh/parameter_gather.h"
#include "parallel/partition.h"
#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace redspine {

/// A rank's place on the tensor axis, from which the shares that it holds follow.
struct TensorRank {
  int num_ranks = 1;
  int rank = 0;
  int num_leaves = 0;  // exact mode: the leaves that shares are made of (model/leaf_sums.h); else 0

  bool is_exact() const { return num_leaves > 0; }
  Range share(std::int64_t count) const;
  /// Exact mode: [leaf] of a dim of `count`; else none.
  std::vector<Range> leaves(std::int64_t count) const;
};

/// What a tensor rank's gradient of the parameter is after the backward pass.
enum class LocalGradient {
  complete,  // the whole gradient of the rows that it holds
  partial,   // a summand: other tensor ranks that hold the same rows have the others
};

/// The type in which layers read a parameter.
enum class ReadAs {
  activations,  // that of the activations which it meets
  f32,          // the values themselves: weights and biases of norms
};

/// A parameter as the whole model knows it, and the range of one dim that this rank holds.
struct ParameterSpec {
  std::string name;
  Shape global_shape;  // [n] or [rows, cols]
  int sharded_dim = 0;
  Range local;  // of sharded_dim, held here; everything where the parameter is replicated
  Range owned;  // the part of `local` that this rank alone counts; disjoint over the tensor axis
  LocalGradient local_gradient = LocalGradient::complete;
  ReadAs read_as = ReadAs::activations;
  std::vector<std::int64_t> leaf_ends = {};  // exact mode: the local columns at which leaves end
  float initial_std = 0.0F;                  // of a normal distribution around initial_mean
  float initial_mean = 0.0F;

  Shape local_shape() const { return global_shape.with(sharded_dim, local.size()); }
  /// Weight decay is for matrices, not for biases and norms.
  bool decays() const { return global_shape.rank() >= 2; }
};

struct Parameter {
  ParameterSpec spec;
  std::int64_t offset = 0;  // of its first element in the flat buffers
  TensorView value;         // local_shape, f32
  TensorView gradient;      // local_shape, f32
  TensorView working;  // local_shape, bf16: the value as layers read it; empty where that is f32
  // What this rank updates: a range of dim 0 of its own. All, unless the updates are shared out.
  Range updated = {};
  std::int64_t moments_offset = 0;  // of the first element of that in a moment's buffer

  std::int64_t row_size() const;  // elements of an item of dim 0
  /// The part of the gradient that this rank counts in norms: of what it updates.
  ConstTensorView owned_gradient() const;
  /// The same in pieces that no layout cuts.
  SquaresPart owned_squares() const;
};

/// One or more parameters stacked along their rows, so that one matrix product serves them all
/// (query, key and value; gate and up).
struct ParameterStack {
  TensorView value;     // [sum of local rows, cols] or [sum of local sizes], in the type it is read
  TensorView gradient;  // the same shape, f32
  Update next_summand = Update::write;  // how the next summand of the gradient enters it

  /// How the caller, which is about to do so, has to put its summand into the gradient: the first
  /// since zero_gradients() replaces what an earlier step left there.
  Update take_update() { return std::exchange(next_summand, Update::accumulate); }
  /// The gradient for a kernel that only adds: set to zero before the first summand.
  TensorView gradient_to_add_to(Device& device);
};

/// Of a stack that a layer may lack: without elements then.
inline ConstTensorView value_or_none(const ParameterStack* stack) {
  return stack == nullptr ? ConstTensorView() : stack->value;
}
inline TensorView gradient_or_none(Device& device, ParameterStack* stack) {
  return stack == nullptr ? TensorView() : stack->gradient_to_add_to(device);
}

class ParameterStore {
 public:
  /// Parameters declared from here on belong to a new bucket. Returns the store.
  ParameterStore& begin_bucket();
  /// Adds parameters in one stack, to the current bucket. Those of a stack of several are sharded
  /// along dim 0, agree in their other dim and are read in one type. The reference stays valid; its
  /// views are set by allocate().
  ParameterStack& declare(std::vector<ParameterSpec> specs);
  /// A second gradient of a stack, in a bucket of its own, whose sum add_second_gradients() adds to
  /// the first: where two layers' gradients of one parameter must not mix before.
  ParameterStack& declare_second_gradient(ParameterStack& of);
  /// The same; null for none.
  ParameterStack* declare_if_any(std::vector<ParameterSpec> specs) {
    return specs.empty() ? nullptr : &declare(std::move(specs));
  }
  /// Makes the buffers, zeroed, and sets all views, for activations of `dtype` (f32 or bf16). Once,
  /// after the last declare(). With several gradient buffers, sums of gradients can be there side
  /// by side (exact mode).
  void allocate(Device& device, DType dtype = DType::f32, int num_gradient_buffers = 1);
  /// A sharded optimizer: from here on each of the data ranks, of which this is `rank`, updates a
  /// share of every bucket. After allocate().
  void share_updates(int num_ranks, int rank);
  /// From here on gradients are those of a new sum, in this buffer; what was there no longer
  /// counts.
  void zero_gradients(int buffer = 0);
  /// After the gradients of a step, which are in the first buffer: of what this rank updates.
  void add_second_gradients(Device& device);
  /// Rounds all values to the working copy, where there is one: after anybody but the optimizer has
  /// written to values().
  void refresh_working(Device& device);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The flat buffers; every stack starts at a multiple of 64 bytes, and the gaps stay zero.
  TensorView values() { return values_; }
  ConstTensorView values() const { return values_; }
  TensorView gradients() { return gradients_.front().view().slice(0, size_); }
  /// Values in bf16 as layers read them, laid out alike; empty where those read the values.
  TensorView working() { return working_; }
  /// The elements of the flat buffers that belong to a bucket of begin_bucket().
  Range bucket_elements(std::size_t bucket) const;
  /// Of all buffers on the device.
  std::int64_t bytes() const;
  /// The buckets in the order of begin_bucket(); last, those of second gradients.
  std::vector<GradientBucket> buckets();
  /// The same buckets of values, and of what layers read in bf16, with the shares of the ranks that
  /// update them.
  std::vector<GatheredBucket> gathered_buckets();
  const ParameterShares& shares() const { return *shares_; }
  /// What this rank counts in the gradient norm.
  std::vector<ConstTensorView> owned_gradients() const;
  std::vector<SquaresPart> owned_squares() const;

 private:
  struct StackLayout {
    ParameterStack views;
    Shape shape{0};
    ReadAs read_as = ReadAs::activations;
    std::int64_t offset = 0;
    const StackLayout* first = nullptr;  // of a second gradient: the stack of the first
  };
  void point_gradients_at(int buffer);
  std::vector<Range> bucket_ranges() const;
  Range elements_of(const StackLayout& stack) const {
    return {stack.offset, stack.offset + stack.shape.count()};
  }

  std::vector<Parameter> parameters_;
  std::vector<std::size_t> bucket_of_parameter_;
  std::vector<std::int64_t> bucket_begins_;
  std::deque<StackLayout> stacks_;
  std::optional<ParameterShares> shares_;  // once the buffers are there
  std::int64_t size_ = 0;
  std::int64_t size_with_second_ = 0;
  Tensor values_;
  std::vector<Tensor> gradients_;  // [buffer]
  Tensor working_;
};

/// A parameter that every tensor rank holds whole; tensor rank 0 counts it.
ParameterSpec replicated_parameter(std::string name, Shape shape, int tensor_rank);

/// A parameter split evenly over the tensor axis along `dim`.
ParameterSpec sharded_parameter(std::string name, Shape global_shape, int dim, Range local);

}  // namespace redspine
