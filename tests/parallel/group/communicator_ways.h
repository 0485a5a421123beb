// A communicator of all ranks for each way in which collectives are carried, and values for them
// whose sums are exact.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/group/communicator.h"
#include "parallel/mesh/choose_communicator.h"
#include "tests/support/far_device.h"
#include "tests/support/mpi_main.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {

inline constexpr Stream kStreams[] = {Stream::compute, Stream::activations, Stream::gradients};

/// A way to reduce: on whose memory, and by what.
struct Way {
  const char* name;
  std::function<std::unique_ptr<Device>()> make_device;
  CollectiveBackend collectives;
};

inline std::vector<Way> ways() {
  std::vector<Way> all = {
      {"InPlace", [] { return make_cpu_device(1); }, CollectiveBackend::automatic},
      {"Staged", [] { return std::make_unique<FarDevice>(); }, CollectiveBackend::mpi}};
  const auto make_gpu = [] { return make_cuda_device(world().rank()); };
  if (num_cuda_devices() > 0) all.push_back({"StagedFromGpu", make_gpu, CollectiveBackend::mpi});
  if (num_cuda_devices() >= world().size()) {
    all.push_back({"BetweenGpus", make_gpu, CollectiveBackend::nccl});
  }
  return all;
}

class CommunicatorOn : public ::testing::TestWithParam<Way> {
 protected:
  std::unique_ptr<Device> device = GetParam().make_device();
  std::unique_ptr<Communicator> communicator = make_communicator(
      world(), *device, choose_collective_backend(world(), *device, GetParam().collectives));

  /// Runs `call(stream)` between the compute stream's work before and after it.
  template <class Call>
  void on(Stream stream, const Call& call) {
    device->order(Stream::compute, stream);
    call(stream);
    device->order(stream, Stream::compute);
  }
};

/// Small whole numbers, so that every sum is exact.
inline std::vector<float> values_of(int rank, std::size_t count, int salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + rank * 31 + salt) % 101 - 50);
  }
  return values;
}

/// What an all-reduce makes of values_of() all ranks.
inline std::vector<float> reduced(std::size_t count, int salt, ReduceOp op) {
  std::vector<float> result = values_of(0, count, salt);
  for (int rank = 1; rank < world().size(); ++rank) {
    const std::vector<float> values = values_of(rank, count, salt);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = op == ReduceOp::sum ? result[i] + values[i] : std::max(result[i], values[i]);
    }
  }
  return result;
}

inline Tensor tensor_of(Device& device, std::size_t count, int salt) {
  return to_device(device, values_of(world().rank(), count, salt),
                   {static_cast<std::int64_t>(count)});
}

/// Of each rank.
using Shares = std::vector<Range>;

/// The elements of a range.
template <class T>
std::vector<T> slice_of(const std::vector<T>& values, const Range& range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

}  // namespace redspine::testing
