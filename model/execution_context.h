// What every layer is built with: where it runs, and with whom it shares its work.
#pragma once

#include "model/leaf_sums.h"
#include "model/parameters.h"
#include "model/row_shares.h"
#include "parallel/config.h"
#include "parallel/mesh/process_mesh.h"
#include "tensor/ops.h"
#include "tensor/philox.h"

namespace redspine {

struct ExecutionContext {
  Device& device;
  const ProcessMesh& mesh;
  DType dtype = DType::f32;  // of activations and of the weights they meet: f32 or bf16
  int num_leaves = 0;        // exact mode (model/leaf_sums.h), in f32; else 0
  Recompute recompute = Recompute::none;
  OptimizerPlacement optimizer = OptimizerPlacement::replicated;
  bool sequence = false;                // sequence parallelism (model/row_shares.h)
  LeafScratch* leaf_scratch = nullptr;  // exact mode; a model sets its own
  RowScratch* rows = nullptr;           // where tensor ranks share out rows; a model sets its own

  Communicator& tensor_axis() const { return mesh.along(Axis::tensor); }
  TensorRank tensor_rank() const {
    return {
        .num_ranks = tensor_axis().size(), .rank = tensor_axis().rank(), .num_leaves = num_leaves};
  }

  /// Sequence parallelism: what each tensor rank has of the rows outside of split regions. None:
  /// each has all.
  std::span<const Range> row_shares() const {
    return rows == nullptr ? std::span<const Range>() : rows->shares.of_ranks();
  }
  /// This rank's rows of what has all: itself, or [n, D].
  TensorView own_rows(TensorView x_BTD) const {
    if (rows == nullptr) return x_BTD;
    const Range& own = rows->shares.own();
    return x_BTD.reshape({x_BTD.rows(), x_BTD.cols()}).slice(own.begin, own.size());
  }
  /// What this rank has of the residual stream: [B, T, D], or of its rows [n, D].
  Shape stream_shape(std::int64_t batch, std::int64_t length, std::int64_t hidden_size) const {
    if (rows == nullptr) return {batch, length, hidden_size};
    return {rows->shares.own().size(), hidden_size};
  }
};

/// Where dropout is applied in a model, to give each place its own random numbers.
enum class DropoutSite : std::uint64_t { embedding, attention, attention_residual, mlp_residual };

/// The dropout of one micro-batch. Random numbers depend on the seed, the place (layer and site),
/// the global number of the sample and the element within it: on no rank, layout or history.
struct DropoutSource {
  std::uint64_t seed;
  float probability;          // 0 in evaluation
  ConstTensorView samples_B;  // i64, on the device

  DropoutKey at(DropoutSite site, std::int64_t layer) const {
    // Weights draw from keys of the same seed; the offset keeps the purposes apart.
    constexpr std::uint64_t kDropoutPurpose = std::uint64_t{0xD0} << 56;
    const auto place =
        kDropoutPurpose + static_cast<std::uint64_t>(layer) * 4 + static_cast<std::uint64_t>(site);
    return {.key = random_key(seed, place), .probability = probability, .samples_B = samples_B};
  }
};

/// out = dropped(x), both of the residual stream; the backward pass calls it on the gradient.
void drop(const ExecutionContext& execution, TensorView out_nD, ConstTensorView x_nD,
          const DropoutKey& dropout);
/// The same in place.
inline void drop(const ExecutionContext& execution, TensorView x_nD, const DropoutKey& dropout) {
  drop(execution, x_nD, x_nD, dropout);
}

}  // namespace redspine
