#include <gtest/gtest.h>

#include <vector>

#include "tensor/cuda/check.h"
#include "tensor/cuda/elementwise.h"

namespace redspine {
namespace {

TEST(CudaOnHost, AddsByTheKernelOfTheCudaBackend) {
  for (std::int64_t count : {1, 31, 256, 257, 1000}) {
    std::vector<float> out(static_cast<std::size_t>(count), 1.0F);
    const std::vector<float> x(static_cast<std::size_t>(count), 2.0F);
    const std::size_t bytes = out.size() * sizeof(float);
    float* device_out = nullptr;
    float* device_x = nullptr;
    check_cuda(cudaMalloc(&device_out, bytes), "cudaMalloc");
    check_cuda(cudaMalloc(&device_x, bytes), "cudaMalloc");
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cuda(cudaMemcpyAsync(device_out, out.data(), bytes, cudaMemcpyHostToDevice, stream), "");
    check_cuda(cudaMemcpyAsync(device_x, x.data(), bytes, cudaMemcpyHostToDevice, stream), "");
    enqueue_add({.out = {device_out, DType::f32, {count}}, .x = {device_x, DType::f32, {count}}},
                stream);
    check_cuda(cudaMemcpyAsync(out.data(), device_out, bytes, cudaMemcpyDeviceToHost, stream), "");
    EXPECT_EQ(out, std::vector<float>(out.size(), 3.0F));
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    check_cuda(cudaFree(device_out), "cudaFree");
    check_cuda(cudaFree(device_x), "cudaFree");
  }
}

}  // namespace
}  // namespace redspine
