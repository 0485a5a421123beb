// absent_rank first | second | end: what one of two ranks never joins, as NCCL's communicator meets
// it: a stream's first collective, a later one, or the end. Run by
// tests/cuda_on_host/absent_rank_test.sh. Does not end by itself.
#include <chrono>
#include <string>
#include <thread>

#include "parallel/group/failure.h"
#include "parallel/group/mpi_session.h"
#include "parallel/nccl/nccl_communicator.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

using namespace std::chrono_literals;

void run(const ProcessGroup& world, const std::string& absent_from) {
  const auto is_absent = [&](const std::string& from) {
    return world.rank() == 1 && from == absent_from;
  };
  const auto device = make_cuda_device(world.rank());
  Tensor values(*device, DType::f32, {1000});
  const bool waits_in_collective = absent_from == "second";
  const auto communicator = make_nccl_communicator(
      world, *device,
      {.start = waits_in_collective ? 30s : 1s, .collective = waits_in_collective ? 1s : 30s});
  communicator->begin_step(7);
  if (is_absent("first")) std::this_thread::sleep_for(60s);
  communicator->all_reduce(values, ReduceOp::sum, Stream::gradients);
  device->synchronize(Stream::gradients);
  if (is_absent("second")) std::this_thread::sleep_for(60s);
  communicator->all_reduce(values, ReduceOp::max, Stream::gradients);
  device->synchronize(Stream::gradients);
  if (is_absent("end")) std::this_thread::sleep_for(60s);
}

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  const redspine::MpiSession mpi(&argc, &argv);
  try {
    redspine::run(mpi.world(), argv[1]);
  } catch (const std::exception& error) {
    redspine::log_from_rank(mpi.world(), error.what());
    redspine::MpiSession::abort(1);
  }
}
