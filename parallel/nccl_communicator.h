// Collectives by NCCL, from GPU to GPU, on the CUDA streams of the device. The build chooses
// whether nccl_communicator.cpp or, without NCCL, no_nccl.cpp defines these.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "parallel/communicator.h"

namespace redspine {

/// "2.28.9"; empty where NCCL is not in this build.
std::string nccl_version();

/// How long peers are waited for.
struct NcclPatience {
  std::chrono::milliseconds start = std::chrono::minutes(2);        // for all of them to come
  std::chrono::milliseconds collective = std::chrono::minutes(10);  // and what was queued before it
};

/// Collective over the group, each of whose ranks has a GPU of its own. `device`, a CUDA device,
/// outlives it. The first calls on each stream come in one order on all ranks. A collective that
/// fails, or takes longer than patience lasts, ends the whole job, with a line that names rank,
/// collective, size and step. NCCL adds in a ring, whose order is always the same, unless NCCL_ALGO
/// says otherwise.
std::unique_ptr<Communicator> make_nccl_communicator(const RankGroup& group, Device& device,
                                                     const NcclPatience& patience = {});

}  // namespace redspine
