// The CUDA device: memory, copies, and the order of its streams. On the host, streams run their
// work as late as they may and in any order, so what is not ordered shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tensor/error.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"
#include "tests/support/random_tensor.h"
#include "tests/tensor/any_device.h"

namespace redspine {

std::unique_ptr<Device> testing::make_device_under_test() { return make_cuda_device(0); }

namespace {

using namespace redspine::testing;

TEST(CudaDevice, AnUploadHasReadItsSourceWhenItReturns) {
  const auto device = make_cuda_device(0);
  std::vector<float> source(1000);
  std::vector<Tensor> tensors;
  for (int i = 0; i < 5; ++i) {
    std::fill(source.begin(), source.end(), static_cast<float>(i));
    tensors.push_back(to_device(*device, source, {1000}));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(from_device(*device, tensors[static_cast<std::size_t>(i)])[999],
              static_cast<float>(i));
  }
}

// A host function between two kernels: it sees what the first has written, and the second sees what
// it has written.
TEST(CudaDevice, AHostFunctionRunsBetweenWhatIsOrderedBeforeAndAfterIt) {
  const auto device = make_cuda_device(0);
  for (const Stream stream : {Stream::activations, Stream::gradients, Stream::compute}) {
    const Tensor x = to_device(*device, std::vector<float>(64, 1.0F), {1, 64});
    const Tensor identity = to_device(*device, std::vector<float>{1.0F}, {1, 1});
    Tensor before(*device, DType::f32, {1, 64});
    Tensor after(*device, DType::f32, {1, 64});
    ops::run(*device, Matmul{.out = before, .a = identity, .b = x});
    device->order(Stream::compute, stream);
    device->enqueue(stream, [&] {
      std::vector<float> values(64);
      const TensorView host(values.data(), DType::f32, {1, 64});
      device->read(host, before);
      for (float& value : values) value += 1.0F;
      device->write(before, host);
    });
    device->order(stream, Stream::compute);
    ops::run(*device, Matmul{.out = after, .a = identity, .b = before});
    EXPECT_EQ(from_device(*device, after), std::vector<float>(64, 2.0F));
  }
}

TEST(CudaDevice, WhatWasWrittenFromAnyMemoryIsThereForEveryStream) {
  const auto device = make_cuda_device(0);
  Tensor tensor(*device, DType::f32, {1000});
  std::vector<float> values(1000);
  for (int round = 1; round <= 4; ++round) {
    std::fill(values.begin(), values.end(), static_cast<float>(round));
    device->write(tensor, ConstTensorView(values.data(), DType::f32, {1000}));
    EXPECT_EQ(from_device(*device, tensor), values);
  }
}

TEST(CudaDevice, RethrowsTheExceptionOfAStreamWhereComputeWaitsForIt) {
  const auto device = make_cuda_device(0);
  device->enqueue(Stream::gradients, [] { throw Error("peer gone"); });
  EXPECT_THROW(device->order(Stream::gradients, Stream::compute), Error);
  device->synchronize(Stream::gradients);
}

TEST(CudaDevice, LendsHostMemoryForCopies) {
  const auto device = make_cuda_device(0);
  auto* memory = static_cast<float*>(device->allocate_host(16 * sizeof(float)));
  std::iota(memory, memory + 16, 0.0F);
  Tensor tensor(*device, DType::f32, {16});
  device->write(tensor, ConstTensorView(memory, DType::f32, {16}));
  std::fill(memory, memory + 16, 0.0F);
  device->read(TensorView(memory, DType::f32, {16}), tensor);
  EXPECT_EQ(memory[15], 15.0F);
  device->deallocate_host(memory);
}

TEST(CudaDevice, DescribesTheGpuWithItsBus) {
  const auto device = make_cuda_device(0);
  EXPECT_EQ(device->kind(), DeviceKind::cuda);
  EXPECT_EQ(device->description().substr(0, 6), "cuda: ");
  EXPECT_NE(device->description().find(device->bus_id()), std::string::npos);
}

TEST(CudaDevice, MoreRanksThanDevicesShareThem) {
  const auto first = make_cuda_device(0);
  const auto beyond = make_cuda_device(num_cuda_devices());
  EXPECT_EQ(beyond->bus_id(), first->bus_id());
}

}  // namespace
}  // namespace redspine
