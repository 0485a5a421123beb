// Collectives by NCCL, from GPU to GPU, on the CUDA streams of the device. The build chooses
// whether nccl_communicator.cpp or, without NCCL, no_nccl.cpp defines these.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "parallel/group/communicator.h"

namespace redspine {

/// "2.28.9"; empty where NCCL is not in this build. ConfigError where this machine lacks it.
std::string nccl_version();

/// How long other ranks are waited for.
struct NcclTimeouts {
  std::chrono::milliseconds start = std::chrono::minutes(2);  // for all of them to come, or to go
  // And what was queued before it.
  std::chrono::milliseconds collective = std::chrono::minutes(10);
};

/// Collective over the group, each of whose ranks has a GPU of its own. `device`, a CUDA device,
/// outlives it. The first calls on each stream come in one order on all ranks. A collective that
/// fails, or takes longer than its timeout, is reported with rank, collective, size and step: by an
/// Error where NCCL does not take it, else by a line that ends the whole job. NCCL adds in a ring,
/// whose order is always the same, unless NCCL_ALGO says otherwise.
std::unique_ptr<Communicator> make_nccl_communicator(const ProcessGroup& group, Device& device,
                                                     const NcclTimeouts& timeouts = {});

}  // namespace redspine
