// One call of NCCL, carried out over MPI once the ranks have told each other what they call.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <string>

namespace on_host {

enum class CollectiveKind {
  all_reduce,
  reduce_scatter,
  all_gather,
  reduce,
  broadcast,
  send,
  recv,
};

struct Collective {
  CollectiveKind kind;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count;  // as NCCL counts it: of a share where there are shares
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  // root, or the rank at the other end
};

/// Bytes of an element; 0 for what is no type.
std::size_t size_of(ncclDataType_t type);

/// Waits without taking the processor from the ranks that are waited for.
void wait_for(MPI_Request& request);

/// What differs from the call of another rank; empty where nothing does, and the call is done.
/// `number` counts what all ranks of `communicator` call, which messages are not part of.
std::string run(const Collective& collective, std::size_t number, MPI_Comm communicator);

}  // namespace on_host
