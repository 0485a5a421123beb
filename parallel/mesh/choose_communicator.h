// Which backend carries a group's collectives on device memory, and the communicator of it.
#pragma once

#include <memory>

#include "parallel/group/communicator.h"

namespace redspine {

/// NCCL or MPI, for `group` as a whole. Collective over it, with one result. Throws ConfigError
/// (run.collectives) on every rank where `requested` cannot be had: NCCL without a GPU, without
/// NCCL in the build, or with two ranks on one GPU; and on each rank whose machine lacks NCCL's
/// library.
CollectiveBackend choose_collective_backend(const ProcessGroup& group, const Device& device,
                                            CollectiveBackend requested);

/// The communicator of a group: nothing for one rank, else by what choose_collective_backend() has
/// chosen. Collective over the group. `device` outlives it.
std::unique_ptr<Communicator> make_communicator(const ProcessGroup& group, Device& device,
                                                CollectiveBackend chosen);

}  // namespace redspine
