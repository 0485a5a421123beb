// The MPI side of a ProcessGroup. Included by sources of parallel/ only.
#pragma once

#include <mpi.h>

#include "parallel/group/process_group.h"

namespace redspine {

/// Throws Error with MPI's own text where a call failed.
void check_mpi(int code, const char* call, const char* file = __builtin_FILE(),
               int line = __builtin_LINE());

struct ProcessGroup::Handle {
  /// Takes over `owned`, which is freed with the handle unless it is a predefined communicator.
  explicit Handle(MPI_Comm owned);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  MPI_Comm communicator;
};

}  // namespace redspine
