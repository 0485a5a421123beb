// Owners of streams and events. Local.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "tensor/cuda/check.h"

namespace redspine::cuda {

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using StreamOwner = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using EventOwner = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

/// An event for order alone: without a time.
inline EventOwner make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return EventOwner(event);
}

}  // namespace redspine::cuda
