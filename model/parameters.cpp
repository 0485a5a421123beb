#include "model/parameters.h"

#include <algorithm>
#include <cassert>

#include "parallel/sum_tree.h"
#include "tensor/ops.h"

namespace redspine {
namespace {

// A stack starts at a cache line, which also suits 16-byte vector accesses on a GPU.
constexpr std::int64_t kAlignmentInFloats = 16;

}  // namespace

Range TensorRank::share(std::int64_t count) const {
  if (!is_exact()) return partition(count, num_ranks, rank);
  const Range own = leaves_of(num_leaves, num_ranks, rank);
  return {leaf_range(count, num_leaves, static_cast<int>(own.begin)).begin,
          leaf_range(count, num_leaves, static_cast<int>(own.end) - 1).end};
}

std::vector<Range> TensorRank::leaves(std::int64_t count) const {
  std::vector<Range> leaves;
  leaves.reserve(static_cast<std::size_t>(num_leaves));
  for (int leaf = 0; leaf < num_leaves; ++leaf) {
    leaves.push_back(leaf_range(count, num_leaves, leaf));
  }
  return leaves;
}

std::int64_t Parameter::row_size() const {
  return value.dim(0) == 0 ? 0 : value.count() / value.dim(0);
}

ConstTensorView Parameter::owned_gradient() const {
  Range rows = updated;
  if (spec.owned != spec.local) {
    assert(spec.sharded_dim == 0);
    rows = {std::max(rows.begin, spec.owned.begin - spec.local.begin),
            std::min(rows.end, spec.owned.end - spec.local.begin)};
  }
  return gradient.slice(std::max<std::int64_t>(rows.begin, 0),
                        std::max<std::int64_t>(rows.size(), 0));
}

// A vector's elements are pieces each: the tensor axis may cut it anywhere.
SquaresPart Parameter::owned_squares() const {
  const ConstTensorView owned = owned_gradient();
  if (spec.global_shape.rank() == 1) return {owned.reshape({owned.count(), 1}), {1}};
  if (!spec.leaf_ends.empty()) return {owned, spec.leaf_ends};
  return {owned, {owned.cols()}};
}

TensorView ParameterStack::gradient_to_add_to(Device& device) {
  if (take_update() == Update::write) device.zero(gradient);
  return gradient;
}

ParameterStore& ParameterStore::begin_bucket() {
  bucket_begins_.push_back(size_);
  return *this;
}

ParameterStack& ParameterStore::declare(std::vector<ParameterSpec> specs) {
  assert(!bucket_begins_.empty() && values_.count() == 0);
  StackLayout& stack = stacks_.emplace_back();
  stack.offset = size_;
  std::int64_t rows = 0;
  for (ParameterSpec& spec : specs) {
    assert(specs.size() == 1 || (spec.sharded_dim == 0 && spec.read_as == specs[0].read_as));
    stack.read_as = spec.read_as;
    const Shape local = spec.local_shape();
    rows += local[0];
    stack.shape = local.with(0, rows);
    parameters_.push_back(
        {.spec = std::move(spec), .offset = size_, .value = {}, .gradient = {}, .working = {}});
    bucket_of_parameter_.push_back(bucket_begins_.size() - 1);
    size_ += local.count();
  }
  size_ = (size_ + kAlignmentInFloats - 1) / kAlignmentInFloats * kAlignmentInFloats;
  return stack.views;
}

ParameterStack& ParameterStore::declare_second_gradient(ParameterStack& of) {
  const auto first = std::find_if(stacks_.begin(), stacks_.end(),
                                  [&of](const StackLayout& stack) { return &stack.views == &of; });
  assert(first != stacks_.end());
  StackLayout& stack = stacks_.emplace_back();
  stack.shape = first->shape;
  stack.first = &*first;
  return stack.views;
}

void ParameterStore::allocate(Device& device, DType dtype, int num_gradient_buffers) {
  size_with_second_ = size_;
  for (StackLayout& stack : stacks_) {
    if (stack.first == nullptr) continue;
    stack.offset = size_with_second_;
    size_with_second_ += stack.shape.count();
  }
  values_ = Tensor(device, DType::f32, {size_});
  for (int buffer = 0; buffer < num_gradient_buffers; ++buffer) {
    gradients_.emplace_back(device, DType::f32, Shape{size_with_second_});
  }
  const bool has_working = dtype != DType::f32;
  if (has_working) working_ = Tensor(device, dtype, {size_});
  const auto view_of = [](Tensor& flat, std::int64_t offset, const Shape& shape) {
    return flat.view().slice(offset, shape.count()).reshape(shape);
  };
  for (Parameter& parameter : parameters_) {
    const Shape shape = parameter.spec.local_shape();
    parameter.value = view_of(values_, parameter.offset, shape);
    if (has_working && parameter.spec.read_as == ReadAs::activations) {
      parameter.working = view_of(working_, parameter.offset, shape);
    }
  }
  for (StackLayout& stack : stacks_) {
    if (stack.first != nullptr) continue;
    const bool reads_working = has_working && stack.read_as == ReadAs::activations;
    Tensor& read = reads_working ? working_ : values_;
    stack.views.value = view_of(read, stack.offset, stack.shape);
  }
  point_gradients_at(0);
  share_updates(1, 0);
}

void ParameterStore::share_updates(int num_ranks, int rank) {
  std::vector<std::vector<RowsInBuffer>> rows(bucket_begins_.size());
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    const std::int64_t count = parameter.value.count();
    const bool is_matrix = parameter.value.shape().rank() == 2;
    rows[bucket_of_parameter_[p]].push_back({.offset = parameter.offset,
                                             .num_rows = is_matrix ? parameter.value.dim(0) : 1,
                                             .row_size = is_matrix ? parameter.row_size() : count});
  }
  std::vector<std::vector<Range>> shares;
  for (const Range& bucket : bucket_ranges()) {
    shares.push_back(share_out(bucket, rows[shares.size()], num_ranks));
  }
  shares_.emplace(std::move(shares), rank);
  for (Parameter& parameter : parameters_) {
    const std::int64_t count = parameter.value.count();
    const Range own = shares_->own_part({parameter.offset, parameter.offset + count});
    if (own.size() == 0) {
      parameter.updated = {};
      continue;
    }
    parameter.updated = {(own.begin - parameter.offset) / parameter.row_size(),
                         (own.end - parameter.offset) / parameter.row_size()};
    parameter.moments_offset = shares_->moment_of(own.begin);
  }
}

std::vector<Range> ParameterStore::bucket_ranges() const {
  std::vector<Range> ranges;
  ranges.reserve(bucket_begins_.size());
  for (std::size_t b = 0; b < bucket_begins_.size(); ++b) ranges.push_back(bucket_elements(b));
  return ranges;
}

void ParameterStore::point_gradients_at(int buffer) {
  const TensorView flat = gradients_[static_cast<std::size_t>(buffer)];
  const auto view_of = [&](std::int64_t offset, const Shape& shape) {
    return flat.slice(offset, shape.count()).reshape(shape);
  };
  for (Parameter& parameter : parameters_) {
    parameter.gradient = view_of(parameter.offset, parameter.spec.local_shape());
  }
  for (StackLayout& stack : stacks_) stack.views.gradient = view_of(stack.offset, stack.shape);
}

void ParameterStore::zero_gradients(int buffer) {
  point_gradients_at(buffer);
  for (StackLayout& stack : stacks_) stack.views.next_summand = Update::write;
}

void ParameterStore::add_second_gradients(Device& device) {
  point_gradients_at(0);
  for (const StackLayout& stack : stacks_) {
    if (stack.first == nullptr) continue;
    const Range own = shares_->own_part(elements_of(*stack.first));
    const TensorView flat = gradients_.front();
    ops::run(device, Accumulate{.sum = flat.slice(own.begin, own.size()),
                                .x = flat.slice(stack.offset + own.begin - stack.first->offset,
                                                own.size())});
  }
}

// On the host and in pieces: it happens once, where the values came from the host anyway.
void ParameterStore::refresh_working(Device& device) {
  if (working_.count() == 0) return;
  constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 22;
  std::vector<float> values;
  std::vector<BFloat16> rounded;
  for (const Range& piece : pieces(size_, kElementsAtOnce)) {
    values.resize(static_cast<std::size_t>(piece.size()));
    device.download(host_view(std::span(values)), values_.view().slice(piece.begin, piece.size()));
    rounded.resize(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(),
                   [](float value) { return BFloat16(value); });
    device.upload(working_.view().slice(piece.begin, piece.size()),
                  host_view(std::span<const BFloat16>(rounded)));
  }
}

std::int64_t ParameterStore::bytes() const {
  const auto of_gradients = gradients_.size() * gradients_.front().view().bytes();
  return static_cast<std::int64_t>(values_.view().bytes() + of_gradients + working_.view().bytes());
}

Range ParameterStore::bucket_elements(std::size_t bucket) const {
  const bool is_last = bucket + 1 == bucket_begins_.size();
  return {bucket_begins_[bucket], is_last ? size_ : bucket_begins_[bucket + 1]};
}

std::vector<GradientBucket> ParameterStore::buckets() {
  std::vector<GradientBucket> buckets;
  // `shares` are of `shared_elements`, which a bucket holds elsewhere if it is of second gradients.
  const auto add_bucket = [&](const Range& range, const Range& shared_elements,
                              const std::vector<Range>& shares) {
    GradientBucket& bucket = buckets.emplace_back();
    for (Tensor& buffer : gradients_) {
      bucket.gradients.push_back(buffer.view().slice(range.begin, range.size()));
    }
    if (shares_->are_apart()) bucket.shares = shares_within(shared_elements, shares);
  };
  const std::vector<Range> ranges = bucket_ranges();
  for (std::size_t b = 0; b < ranges.size(); ++b) {
    add_bucket(ranges[b], ranges[b], shares_->of_bucket(b));
  }
  for (const StackLayout& stack : stacks_) {
    if (stack.first == nullptr) continue;
    const auto bucket =
        std::upper_bound(bucket_begins_.begin(), bucket_begins_.end(), stack.first->offset) -
        bucket_begins_.begin() - 1;
    add_bucket(elements_of(stack), elements_of(*stack.first),
               shares_->of_bucket(static_cast<std::size_t>(bucket)));
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& parameter = parameters_[p];
    if (parameter.spec.local_gradient == LocalGradient::complete) continue;
    const std::int64_t rows = parameter.spec.local.size();
    buckets[bucket_of_parameter_[p]].shared.push_back(
        {.gradient = parameter.gradient.reshape({rows, parameter.gradient.count() / rows}),
         .rows = parameter.spec.local,
         .num_global_rows = parameter.spec.global_shape[0]});
  }
  return buckets;
}

std::vector<GatheredBucket> ParameterStore::gathered_buckets() {
  std::vector<GatheredBucket> buckets;
  for (const Range& range : bucket_ranges()) {
    GatheredBucket bucket{.values = {values_.view().slice(range.begin, range.size())},
                          .shares = shares_within(range, shares_->of_bucket(buckets.size()))};
    if (working_.count() > 0) {
      bucket.values.push_back(working_.view().slice(range.begin, range.size()));
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::vector<ConstTensorView> ParameterStore::owned_gradients() const {
  std::vector<ConstTensorView> owned;
  owned.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) owned.push_back(parameter.owned_gradient());
  return owned;
}

std::vector<SquaresPart> ParameterStore::owned_squares() const {
  std::vector<SquaresPart> owned;
  owned.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) {
    SquaresPart part = parameter.owned_squares();
    if (part.x.count() > 0) owned.push_back(std::move(part));
  }
  return owned;
}

ParameterSpec replicated_parameter(std::string name, Shape shape, int tensor_rank) {
  const Range all{0, shape[0]};
  return {.name = std::move(name),
          .global_shape = shape,
          .sharded_dim = 0,
          .local = all,
          .owned = tensor_rank == 0 ? all : Range{}};
}

ParameterSpec sharded_parameter(std::string name, Shape global_shape, int dim, Range local) {
  return {.name = std::move(name),
          .global_shape = global_shape,
          .sharded_dim = dim,
          .local = local,
          .owned = local};
}

}  // namespace redspine
