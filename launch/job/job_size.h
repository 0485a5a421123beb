// The number of processes of a job, from the environment that its launcher sets: without MPI, which
// takes long to start and which one process does not need.
#pragma once

#include <string>

namespace redspine {

/// For a command that is of one process. As one of several, which would all do the same and write
/// to the same files: one of them reports how to start it, and all get true.
bool reject_many_ranks(const std::string& command);

}  // namespace redspine
