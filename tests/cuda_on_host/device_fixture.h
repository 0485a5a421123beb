// What the tests of the stand-in share: a stream, device arrays, and a fresh device per test.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tensor/cuda/check.h"

namespace redspine {

/// A device array, freed with its owner.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    check_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    check_cuda(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
               "cudaMemcpy");
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    check_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

class CudaOnHost : public ::testing::Test {
 protected:
  CudaOnHost() { use_seed(1); }
  ~CudaOnHost() override {
    cudaStreamDestroy(stream);
    cudaDeviceReset();
  }

  /// Orders of threads, blocks and streams from here on.
  static void use_seed(int seed) {
    setenv("REDSPINE_ON_HOST_SEED", std::to_string(seed).c_str(), 1);
    cudaDeviceReset();
  }

  /// Waits for the stream; what the device says of it.
  std::string outcome() const {
    const cudaError_t status = cudaStreamSynchronize(stream);
    return status == cudaSuccess ? "" : cudaGetErrorString(status);
  }

  cudaStream_t stream = make_stream();

 private:
  static cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return stream;
  }
};

}  // namespace redspine
