// CollectiveBackend by MPI: in place where the device's memory is that of the host, else staged
// through host memory, a piece at a time. Ranks may share a device.
#pragma once

#include <memory>

#include "parallel/group/communicator.h"

namespace redspine {

/// Collective over the group. `device` outlives it.
std::unique_ptr<Communicator> make_mpi_communicator(const ProcessGroup& group, Device& device);

}  // namespace redspine
