// Stands in for tensor/cuda/ where the CUDA toolkit was missing when this program was built.

#include "tensor/device.h"
#include "tensor/error.h"

namespace redspine {

std::unique_ptr<Device> make_cuda_device(int) {
  throw ConfigError("run.device",
                    "cuda: this program was built without CUDA; legal here is cpu (or auto)");
}

}  // namespace redspine
