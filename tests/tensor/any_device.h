// The device of the tests that run on any: each backend's test of its device defines it.
#pragma once

#include <memory>

#include "tensor/device.h"

namespace redspine::testing {

std::unique_ptr<Device> make_device_under_test();

}  // namespace redspine::testing
