#include "tests/support/test_device.h"

namespace redspine::testing {

std::unique_ptr<Device> make_test_device() { return make_cpu_device(1); }

}  // namespace redspine::testing
