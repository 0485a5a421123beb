// Collectives by NCCL, from GPU to GPU, on the CUDA streams of the device. The build chooses
// whether nccl_communicator.cpp or, without NCCL, no_nccl.cpp defines these.
#pragma once

#include <memory>
#include <string>

#include "parallel/communicator.h"

namespace redspine {

/// "2.28.9"; empty where NCCL is not in this build.
std::string nccl_version();

/// Collective over the group, each of whose ranks has a GPU of its own. `device`, a CUDA device,
/// outlives it. A peer that fails or does not come ends the whole job with a line that names rank,
/// collective, size and step.
std::unique_ptr<Communicator> make_nccl_communicator(const RankGroup& group, Device& device);

}  // namespace redspine
