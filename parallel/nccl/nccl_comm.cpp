#include "parallel/nccl/nccl_comm.h"

#include <fmt/format.h>

#include <thread>

#include "tensor/error.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A call is taken within microseconds, unless a rank is late.
constexpr auto kYieldTime = 200us;
constexpr auto kPollInterval = 1ms;

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::bf16:
      return ncclBfloat16;
  }
  throw Error("a dtype that NCCL does not know");
}

// What NCCL says of a failure.
std::string cause(ncclResult_t result, ncclComm_t communicator) {
  const char* details = ncclGetLastError(communicator);
  return fmt::format("{}{}{}", ncclGetErrorString(result),
                     details == nullptr || *details == '\0' ? "" : ": ",
                     details == nullptr ? "" : details);
}

}  // namespace

std::string to_seconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

NcclComm::NcclComm(const ncclUniqueId& id, int rank, int size, const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  finish(lock, ncclCommInitRankConfig(&communicator_, size, id, rank, &config), wait);
}

void NcclComm::all_reduce(TensorView values, ReduceOp op, cudaStream_t stream,
                          const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  finish(lock,
         ncclAllReduce(values.raw(), values.raw(), static_cast<std::size_t>(values.count()),
                       nccl_type(values.dtype()), op == ReduceOp::sum ? ncclSum : ncclMax,
                       communicator_, stream),
         wait);
}

std::optional<std::string> NcclComm::failure() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (asked != ncclSuccess) return cause(asked, communicator_);
  if (state == ncclSuccess || state == ncclInProgress) return std::nullopt;
  return cause(state, communicator_);
}

// Waits until NCCL has taken the call that had this result.
void NcclComm::finish(std::unique_lock<std::mutex>& lock, ncclResult_t result,
                      const NcclWait& wait) {
  const auto begin = Clock::now();
  while (result == ncclInProgress) {
    const auto waited = Clock::now() - begin;
    if (waited >= wait.patience) {
      throw Error(fmt::format("{}: not all ranks have come within {}", wait.what,
                              to_seconds(wait.patience)));
    }
    lock.unlock();
    if (waited < kYieldTime) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
    lock.lock();
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result != ncclSuccess) {
    throw Error(fmt::format("{}: {}", wait.what, cause(result, communicator_)));
  }
}

}  // namespace redspine
