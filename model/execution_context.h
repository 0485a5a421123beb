// What every layer is built with: where it runs, and with whom it shares its work.
#pragma once

#include "model/leaf_sums.h"
#include "model/parameters.h"
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
  LeafScratch* leaf_scratch = nullptr;  // exact mode; a model sets its own

  Communicator& tensor_axis() const { return mesh.along(Axis::tensor); }
  TensorRank tensor_rank() const {
    return {
        .num_ranks = tensor_axis().size(), .rank = tensor_axis().rank(), .num_leaves = num_leaves};
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

/// Drops elements of x [B, T, D] in place; the backward pass calls it on the gradient.
inline void drop(Device& device, TensorView x, const DropoutKey& dropout) {
  if (dropout.probability > 0.0F) ops::run(device, Dropout{.out = x, .x = x, .dropout = dropout});
}

}  // namespace redspine
