// Stands in for tensor/cuda/ where the CUDA toolkit was missing when this program was built.

#include "tensor/device.h"
#include "tensor/error.h"

namespace redspine {

std::unique_ptr<Device> make_cuda_device(int) {
  throw ConfigError("run.device",
                    "is cuda, but the CUDA backend is not in this build; legal here: auto, cpu");
}

int num_cuda_devices() { return 0; }

std::string cuda_description() { return ""; }

}  // namespace redspine
