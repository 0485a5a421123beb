#include "parallel/nccl/nccl_comm.h"

#include <fmt/format.h>

#include <algorithm>
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

ncclRedOp_t nccl_op(ReduceOp op) { return op == ReduceOp::sum ? ncclSum : ncclMax; }

std::size_t count_of(ConstTensorView values) { return static_cast<std::size_t>(values.count()); }

bool are_equal(std::span<const Range> shares) {
  return std::ranges::all_of(
      shares, [&](const Range& share) { return share.size() == shares.front().size(); });
}

bool is_taken(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

// Calls `start(share, owner)` for each share, as one call of NCCL: its own operations on shares
// know but one size. Returns that call's result.
template <class Start>
ncclResult_t start_for_each_share(TensorView values, std::span<const Range> shares,
                                  const Start& start) {
  ncclResult_t result = ncclGroupStart();
  if (result != ncclSuccess) return result;
  for (std::size_t owner = 0; owner < shares.size() && is_taken(result); ++owner) {
    const Range& share = shares[owner];
    if (share.size() == 0) continue;
    result = start(values.slice(share.begin, share.size()), static_cast<int>(owner));
  }
  const ncclResult_t ended = ncclGroupEnd();
  return is_taken(result) ? ended : result;
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

NcclComm::NcclComm(const ncclUniqueId& id, int rank, int size, const NcclWait& wait) : rank_(rank) {
  std::unique_lock lock(mutex_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  finish(lock, ncclCommInitRankConfig(&communicator_, size, id, rank, &config), wait);
}

void NcclComm::all_reduce(TensorView values, ReduceOp op, cudaStream_t stream,
                          const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  finish(lock,
         ncclAllReduce(values.raw(), values.raw(), count_of(values), nccl_type(values.dtype()),
                       nccl_op(op), communicator_, stream),
         wait);
}

void NcclComm::reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op,
                              cudaStream_t stream, const NcclWait& wait) {
  const ncclDataType_t type = nccl_type(values.dtype());
  std::unique_lock lock(mutex_);
  if (are_equal(shares)) {
    const TensorView own = own_share(values, shares);
    const ncclResult_t result = ncclReduceScatter(values.raw(), own.raw(), count_of(own), type,
                                                  nccl_op(op), communicator_, stream);
    return finish(lock, result, wait);
  }
  const auto reduce = [&](TensorView share, int owner) {
    return ncclReduce(share.raw(), share.raw(), count_of(share), type, nccl_op(op), owner,
                      communicator_, stream);
  };
  finish(lock, start_for_each_share(values, shares, reduce), wait);
}

void NcclComm::all_gather(TensorView values, std::span<const Range> shares, cudaStream_t stream,
                          const NcclWait& wait) {
  const ncclDataType_t type = nccl_type(values.dtype());
  std::unique_lock lock(mutex_);
  if (are_equal(shares)) {
    const TensorView own = own_share(values, shares);
    const ncclResult_t result =
        ncclAllGather(own.raw(), values.raw(), count_of(own), type, communicator_, stream);
    return finish(lock, result, wait);
  }
  const auto broadcast = [&](TensorView share, int owner) {
    return ncclBroadcast(share.raw(), share.raw(), count_of(share), type, owner, communicator_,
                         stream);
  };
  finish(lock, start_for_each_share(values, shares, broadcast), wait);
}

void NcclComm::broadcast(TensorView values, int root, cudaStream_t stream, const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  finish(lock,
         ncclBroadcast(values.raw(), values.raw(), count_of(values), nccl_type(values.dtype()),
                       root, communicator_, stream),
         wait);
}

void NcclComm::send(ConstTensorView values, int to, cudaStream_t stream, const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  finish(lock,
         ncclSend(values.raw(), count_of(values), nccl_type(values.dtype()), to, communicator_,
                  stream),
         wait);
}

void NcclComm::recv(TensorView values, int from, cudaStream_t stream, const NcclWait& wait) {
  std::unique_lock lock(mutex_);
  finish(lock,
         ncclRecv(values.raw(), count_of(values), nccl_type(values.dtype()), from, communicator_,
                  stream),
         wait);
}

TensorView NcclComm::own_share(TensorView values, std::span<const Range> shares) const {
  const Range& own = shares[static_cast<std::size_t>(rank_)];
  return values.slice(own.begin, own.size());
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
    if (waited >= wait.timeout) {
      throw Error(fmt::format("{}: not all ranks have come within {}", wait.what,
                              to_seconds(wait.timeout)));
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
