// Streams and events, by the queue of the device.

#include "tests/cuda_on_host/device_queue.h"
#include "tests/cuda_on_host/runtime_api.h"

using on_host::DeviceQueue;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  *stream = DeviceQueue::instance().create_stream();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return DeviceQueue::instance().destroy_stream(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return DeviceQueue::instance().synchronize(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return DeviceQueue::instance().query(stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags != 0 || event == nullptr) return cudaErrorInvalidValue;
  return DeviceQueue::instance().wait_for_event(stream, event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if ((flags & ~cudaEventDisableTiming) != 0) return cudaErrorInvalidValue;
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  return DeviceQueue::instance().record(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  return DeviceQueue::instance().synchronize(event);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  return DeviceQueue::instance().query(event);
}
