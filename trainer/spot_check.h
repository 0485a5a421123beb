// Silent corruption of a computation: every so many steps the next data rank's tensor group
// computes one block of one micro-batch again, from the input and the gradient of the output that
// it is sent, and compares the bits of all that comes out. What a faulty processor or memory
// changes in a gradient before it is added up over the data axis, no comparison of replicas can
// see.
//
// The micro-batch is the first of a step, whose gradients are there by themselves; the block is
// drawn anew each time. Collective over the world.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/gpt.h"
#include "parallel/mesh/process_mesh.h"
#include "trainer/config.h"

namespace redspine {

class SpotCheck final : public BlockObserver {
 public:
  /// The others outlive it; there are two data ranks or more. Takes the memory that one block
  /// takes, with values, gradients and activations, and five residual streams of a micro-batch.
  SpotCheck(const Config& config, Gpt& model, const ProcessMesh& mesh, Device& device);

  /// The block that a step checks.
  static std::int64_t block_of(std::uint64_t seed, std::int64_t num_blocks, std::int64_t step);

  /// Of this step the block is to be looked at in the forward and backward pass to come.
  void begin(std::int64_t step);
  void before_backward(const BlockPass& pass) override;
  void after_backward(const BlockPass& pass) override;
  /// After the step's gradients have been added up and before its update; `samples` are the global
  /// numbers of those in that pass. CollectiveError where a block came out otherwise: with the
  /// ranks that computed it, those that computed it again, and what differs.
  void finish(std::span<const std::int64_t> samples);

 private:
  // Hashes of all that a block computes: its output, the gradient of its input, and those of its
  // parameters.
  using Results = std::vector<std::uint64_t>;

  std::uint64_t hash_of(ConstTensorView values);
  void hash_gradients(const ParameterStore& store, std::size_t bucket, Results& results);
  void exchange();
  Results compute_again();
  std::string difference(const Results& first, const Results& again) const;
  [[noreturn]] void fail(const std::string& mine) const;

  std::uint64_t seed_;
  std::int64_t num_blocks_;
  Gpt& model_;
  const ProcessMesh& mesh_;
  Device& device_;
  std::int64_t step_ = 0;
  std::size_t checked_ = 0;  // the block of this step

  // What this rank computed, and what it sends.
  Results results_;
  Tensor x_nD_;
  Tensor dout_nD_;
  // The block that stands in for that of the data rank before this one, and what it works on.
  ParameterStore store_;
  Block block_;
  Block::AttentionSaved attention_saved_;
  Block::MlpSaved mlp_saved_;
  Block::Scratch scratch_;
  Tensor samples_B_;
  Tensor received_x_nD_;
  Tensor received_dresidual_nD_;
  Tensor out_nD_;
  std::vector<std::byte> host_;  // what is hashed, of a device with other memory
};

}  // namespace redspine
