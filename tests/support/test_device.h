// The device that a test on several ranks computes on. Which one is chosen when the test is linked:
// the CPU, or CUDA with the property REDSPINE_DEVICE (tests/cuda_on_host).
#pragma once

#include <memory>

#include "tensor/device.h"

namespace redspine::testing {

/// This rank's. The CPU computes with one thread, as ranks share this machine.
std::unique_ptr<Device> make_test_device();

}  // namespace redspine::testing
