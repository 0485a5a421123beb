// Collectives through the host's memory, by memory that the ranks of a host share or else by MPI: in
// place where the device's memory is that of the host, else staged, a piece at a time. Ranks may
// share a device.
#pragma once

#include <memory>

#include "parallel/group/communicator.h"

namespace redspine {

/// Collective over the group. `device` outlives it.
std::unique_ptr<Communicator> make_mpi_communicator(const ProcessGroup& group, Device& device);

}  // namespace redspine
