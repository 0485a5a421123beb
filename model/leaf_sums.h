// Exact mode: a sum over a dim that the tensor axis splits, in an order that no split enters. The
// dim is cut into leaves, each of which one rank has whole; leaves meet in a tree
// (parallel/sum_tree.h). The order is made once for a layer. Local, but for reduce().
#pragma once

#include <memory>
#include <vector>

#include "model/parameters.h"
#include "parallel/mesh/process_mesh.h"
#include "parallel/sum_tree.h"
#include "tensor/kernels.h"

namespace redspine {

/// One of several ranges of a dim that lie side by side, as the features of a stack of weights.
struct LeafPart {
  std::vector<Range> leaves;  // [leaf]: of the whole model's dim
  Range local;                // what this rank has of it
};

struct LeafSums {
  InnerOrder own;       // of what this rank has
  SumOrder over_ranks;  // of what the ranks' own sums leave

  /// Nothing to add up here: the dim is shorter than the ranks are many.
  bool is_empty() const { return own.parts.empty(); }
};

/// A leaf is the same leaf of each part, one after another.
LeafSums leaf_sums(TensorRank rank, const std::vector<LeafPart>& parts);
/// The columns of a rank's rows at which a leaf ends.
std::vector<std::int64_t> leaf_ends(const LeafPart& part);

/// Memory for the sums of a rank that are several, until they are added to those of the others.
class LeafScratch {
 public:
  /// For sums of `count` f32 each.
  void allocate(Device& device, TensorRank rank, std::int64_t count);

  /// `out` as the place of all sums of an order: itself for one.
  TensorView place_of(const InnerOrder& order, TensorView out);

 private:
  Tensor sums_;
};

/// The sums of an order that lie in `place`, each as large as `out`.
std::vector<ConstTensorView> summands_in(const InnerOrder& order, ConstTensorView place,
                                         ConstTensorView out);

}  // namespace redspine
