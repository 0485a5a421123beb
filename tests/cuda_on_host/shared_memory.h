// The shared memory of the block that runs: poisoned when a block begins, so that nothing is read
// that this block did not write, with a guard zone behind the bytes that the launch asked for.
#pragma once

#include <cstddef>

namespace on_host {

void shared_memory_begin(std::size_t bytes);
bool shared_memory_is_intact(std::size_t bytes);

}  // namespace on_host
