// The digests of a checkpoint, computed from its files: what training.json says of them is not
// looked at.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "parallel/group/process_group.h"
#include "trainer/checkpoint/format/training_json.h"

namespace redspine {

/// Each rank reads some of the tensors. Collective; the same on every rank. CollectiveError where
/// the files cannot be read, or are not those of a state of their config.json.
StateDigests digests_of_files(const std::string& directory, const ProcessGroup& group);

/// The names of the tensors in which two states of one model differ, in the order of the network:
/// weights first.
std::vector<std::string> different_tensors(const ModelConfig& config, const StateDigests& first,
                                           const StateDigests& second);

}  // namespace redspine
