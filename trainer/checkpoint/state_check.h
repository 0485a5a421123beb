// What a checkpoint must not be written of: weights that are not finite, that have changed since
// the step that made them, or of which, or of whose moments, ranks that should hold the same do
// not. What was looked at for that has its digests in the checkpoint.
#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/state_digests.h"

namespace redspine {

class StateCheck {
 public:
  /// All are borrowed but `folder`, that of the checkpoints. Collective over the world.
  StateCheck(const ReplicaGroups& groups, const ParameterStore& parameters,
             const std::vector<StoredTensor>& stored, std::string folder, bool compares_replicas);

  /// The digests of the state after `step`; CollectiveError says what is wrong with it, and where.
  StateDigests run(const TrainingTensors& tensors, std::int64_t step, const Fetch& fetch) const;

 private:
  void check_finite(ConstTensorView values, const Fetch& fetch, std::int64_t step) const;
  void check_unchanged(std::span<const Digest> before, std::span<const Digest> now,
                       std::int64_t step) const;

  ReplicaGroups groups_;
  const ParameterStore& parameters_;
  const std::vector<StoredTensor>& stored_;
  std::string folder_;
  ReplicaCheck replicas_;
};

}  // namespace redspine
