// The CUDA streams behind a Device's streams, for code that gives work to them itself.
#pragma once

#include <cuda_runtime.h>

#include "tensor/device.h"

namespace redspine {

/// `device` must be one that make_cuda_device made. Work given to the stream directly is not
/// ordered behind a host function that `enqueue` gave to it before: `order` and `synchronize` are.
cudaStream_t cuda_stream(Device& device, Stream stream);

}  // namespace redspine
