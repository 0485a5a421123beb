// The digests of what AdamW has updated, by kernels of their own after it. Local.
#pragma once

#include <cuda_runtime.h>

#include "tensor/cuda/scratch.h"
#include "tensor/kernels.h"

namespace redspine::cuda {

/// op.digests, written, of the present values of op.parameter in op.parts. Enqueued.
void write_digests(cudaStream_t stream, Scratch& scratch, const AdamW& op);

}  // namespace redspine::cuda
