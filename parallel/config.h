// The `parallel:` section of a run's configuration: how a model is laid over the ranks.
//
// A plain value, local to a rank and equal on all of them. The number of data ranks is no key: it
// is what the tensor degree leaves of the world.
#pragma once

#include <cstdint>

#include "parallel/mesh_shape.h"
#include "tensor/enum_words.h"
#include "tensor/error.h"

namespace redspine {

/// Which data ranks have the optimizer's moments, and update what they belong to.
enum class OptimizerPlacement {
  replicated,  // each has all
  sharded,     // each has a share (ZeRO-1)
};
template <>
inline constexpr auto kEnumWords<OptimizerPlacement> = std::to_array<EnumWord<OptimizerPlacement>>({
    {OptimizerPlacement::replicated, "replicated"},
    {OptimizerPlacement::sharded, "sharded"},
});

/// What the backward pass computes again instead of having every block keep it.
enum class Recompute {
  none,
  attention,  // the norm before attention, queries, keys, values and context
  block,      // all but the residual stream that a block reads
};
template <>
inline constexpr auto kEnumWords<Recompute> = std::to_array<EnumWord<Recompute>>({
    {Recompute::none, "none"},
    {Recompute::attention, "attention"},
    {Recompute::block, "block"},
});

/// What carries collectives on device memory.
enum class CollectiveBackend {
  automatic,  // NCCL where every rank has a GPU of its own, else MPI
  nccl,       // from GPU to GPU
  mpi,        // through host memory, which also serves ranks that share a GPU
};
template <>
inline constexpr auto kEnumWords<CollectiveBackend> = std::to_array<EnumWord<CollectiveBackend>>({
    {CollectiveBackend::automatic, "auto"},
    {CollectiveBackend::nccl, "nccl"},
    {CollectiveBackend::mpi, "mpi"},
});

struct ParallelConfig {
  std::int64_t tensor = 1;  // ranks that share one model; data = world size / tensor
  bool sequence = false;    // tensor ranks also share out the rows of norms, dropout and residuals
  OptimizerPlacement optimizer = OptimizerPlacement::replicated;
  Recompute recompute = Recompute::none;

  /// The mesh of a job of `num_ranks`, which fit it.
  MeshShape mesh(int num_ranks) const { return MeshShape::of(num_ranks, static_cast<int>(tensor)); }

  /// Adds what is wrong with this section, under full keys ("parallel.tensor").
  void validate(ConfigProblems& problems) const;
};

}  // namespace redspine
