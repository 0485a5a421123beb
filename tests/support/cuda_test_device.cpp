#include "tests/support/mpi_main.h"
#include "tests/support/test_device.h"

namespace redspine::testing {

// All ranks of a test share this host.
std::unique_ptr<Device> make_test_device() { return make_cuda_device(world().rank()); }

}  // namespace redspine::testing
