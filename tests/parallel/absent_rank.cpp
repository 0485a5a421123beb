// A collective that one of two ranks never joins, as NCCL's communicator meets it; run by
// tests/cuda_on_host/absent_rank_test.sh. Does not end by itself.
#include <chrono>
#include <thread>

#include "parallel/mpi_session.h"
#include "parallel/nccl_communicator.h"
#include "tensor/tensor.h"

int main(int argc, char** argv) {
  using namespace redspine;
  using namespace std::chrono_literals;
  const MpiSession mpi(&argc, &argv);
  const auto device = make_cuda_device(mpi.world().rank());
  const Tensor values(*device, DType::f32, {1000});
  const auto communicator =
      make_nccl_communicator(mpi.world(), *device, {.start = 30s, .collective = 1s});
  communicator->begin_step(7);
  communicator->all_reduce(values, ReduceOp::sum, Stream::gradients);
  device->synchronize(Stream::gradients);
  if (mpi.world().rank() == 1) std::this_thread::sleep_for(60s);
  communicator->all_reduce(values, ReduceOp::max, Stream::gradients);
  device->synchronize(Stream::gradients);
}
