// The functions of NCCL. A communicator has a thread that speaks MPI, so that neither the device
// nor the caller ever waits for a rank that does not come.

#include <fmt/format.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/device_memory.h"
#include "tests/cuda_on_host/device_queue.h"
#include "tests/cuda_on_host/nccl_peers.h"

using on_host::Collective;
using on_host::CollectiveKind;
using on_host::DeviceQueue;
using on_host::Peers;

// Freed by destroy. Work in streams holds `peers`, which may live longer.
struct ncclComm {
  std::shared_ptr<Peers> peers;
  std::atomic<bool> is_in_call = false;
  std::vector<std::function<cudaError_t()>> not_enqueued;  // calls that NCCL has not taken yet
  bool is_in_group = false;                                // and more of them may come
};

namespace on_host {
namespace {

// A call on a communicator. NCCL forbids two at a time: the second is refused, and both threads see
// that. A test that looks for such a pair makes calls long by REDSPINE_ON_HOST_NCCL_CALL_MS.
class Call {
 public:
  explicit Call(ncclComm& communicator)
      : communicator_(communicator), is_alone_(!communicator.is_in_call.exchange(true)) {
    if (!is_alone_) {
      communicator.peers->fail(ncclInvalidUsage, "two threads call NCCL on one communicator");
    } else if (const char* text = std::getenv("REDSPINE_ON_HOST_NCCL_CALL_MS")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(text)));
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (is_alone_) communicator_.is_in_call = false;
  }
  bool is_alone() const { return is_alone_; }

 private:
  ncclComm& communicator_;
  bool is_alone_;
};

// A stream's work: starts the collective when the stream comes to it, and is done when it is.
Work collective_work(std::shared_ptr<Peers> peers, const Collective& collective) {
  return [peers = std::move(peers), collective, started = std::make_shared<bool>(false)] {
    if (!*started) {
      *started = true;
      peers->start(collective);
    }
    if (!peers->is_done()) return false;
    if (peers->state() != ncclSuccess) throw KernelFault(peers->failure());  // a mismatch
    return true;
  };
}

// The communicators of this thread's calls since ncclGroupStart.
thread_local std::optional<std::set<ncclComm_t>> group;

// How many elements lie where a call reads and writes.
struct Extent {
  std::size_t from;
  std::size_t to;
};
Extent extent_of(const Collective& collective, std::size_t num_ranks) {
  const std::size_t count = collective.count;
  switch (collective.kind) {
    case CollectiveKind::reduce_scatter:
      return {.from = num_ranks * count, .to = count};
    case CollectiveKind::all_gather:
      return {.from = count, .to = num_ranks * count};
    case CollectiveKind::send:
      return {.from = count, .to = 0};
    case CollectiveKind::recv:
      return {.from = 0, .to = count};
    default:
      return {.from = count, .to = count};
  }
}

bool is_valid(const Collective& collective, const Peers& peers) {
  const auto num_ranks = static_cast<std::size_t>(peers.num_ranks());
  const std::size_t size = size_of(collective.type);
  const Extent extent = extent_of(collective, num_ranks);
  const auto holds = [size](const void* memory, std::size_t count) {
    return count == 0 || device_memory().holds(memory, count * size);
  };
  return collective.count * size > 0 && collective.peer >= 0 &&
         static_cast<std::size_t>(collective.peer) < num_ranks &&
         holds(collective.from, extent.from) && holds(collective.to, extent.to);
}

ncclResult_t give(const Collective& collective, ncclComm_t communicator, cudaStream_t stream) {
  if (!is_valid(collective, *communicator->peers)) return ncclInvalidArgument;
  const Call call(*communicator);
  if (!call.is_alone()) return ncclInvalidUsage;
  // While a call is in progress no other may be made, but in its group; and an error stays.
  if (!communicator->not_enqueued.empty() && !communicator->is_in_group) return ncclInvalidUsage;
  const ncclResult_t state = communicator->peers->state();
  if (state == ncclInProgress) return ncclInvalidUsage;
  if (state != ncclSuccess) return state;

  communicator->not_enqueued.emplace_back(
      [work = collective_work(communicator->peers, collective), stream] {
        return DeviceQueue::instance().give(stream, work);
      });
  if (!group.has_value()) return ncclInProgress;
  group->insert(communicator);
  communicator->is_in_group = true;
  return ncclSuccess;
}

}  // namespace
}  // namespace on_host

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> num_ids{0};
  const on_host::Meeting meeting{.root = on_host::world_rank(), .number = num_ids++};
  *id = {};
  std::memcpy(id->internal, &meeting, sizeof meeting);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t communicator) {
  thread_local std::string text;
  text = communicator == nullptr ? "" : communicator->peers->failure();
  return text.c_str();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int num_ranks, ncclUniqueId id,
                                    int rank, ncclConfig_t* config) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks) return ncclInvalidArgument;
  if (config == nullptr || config->blocking != 0) return ncclInvalidUsage;  // not imitated
  on_host::Meeting meeting{};
  std::memcpy(&meeting, id.internal, sizeof meeting);
  int device = 0;
  cudaGetDevice(&device);
  auto made = std::make_unique<ncclComm>();
  made->peers = std::make_shared<Peers>(
      meeting, on_host::Member{.rank = rank, .num_ranks = num_ranks, .device = device});
  made->peers->meet();
  *communicator = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const on_host::Call call(*communicator);
  if (!call.is_alone()) return ncclInvalidUsage;
  if (communicator->is_in_group) return ncclInvalidUsage;
  for (const auto& enqueue : std::exchange(communicator->not_enqueued, {})) {
    if (enqueue() == cudaSuccess) continue;
    *state = ncclUnhandledCudaError;
    return ncclSuccess;
  }
  *state = communicator->peers->state();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator == nullptr) return ncclSuccess;
  {
    const on_host::Call call(*communicator);
    if (!call.is_alone()) return ncclInvalidUsage;
    communicator->peers->leave();
  }
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give({.kind = CollectiveKind::all_reduce,
                        .from = from,
                        .to = to,
                        .count = count,
                        .type = type,
                        .op = op},
                       communicator, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give({.kind = CollectiveKind::reduce_scatter,
                        .from = from,
                        .to = to,
                        .count = count,
                        .type = type,
                        .op = op},
                       communicator, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give(
      {.kind = CollectiveKind::all_gather, .from = from, .to = to, .count = count, .type = type},
      communicator, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give({.kind = CollectiveKind::reduce,
                        .from = from,
                        .to = to,
                        .count = count,
                        .type = type,
                        .op = op,
                        .peer = root},
                       communicator, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give({.kind = CollectiveKind::broadcast,
                        .from = from,
                        .to = to,
                        .count = count,
                        .type = type,
                        .peer = root},
                       communicator, stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give(
      {.kind = CollectiveKind::send, .from = from, .count = count, .type = type, .peer = peer},
      communicator, stream);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return on_host::give(
      {.kind = CollectiveKind::recv, .to = to, .count = count, .type = type, .peer = peer},
      communicator, stream);
}

ncclResult_t ncclGroupStart() {
  if (on_host::group.has_value()) return ncclInvalidUsage;  // groups in groups are not imitated
  on_host::group.emplace();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!on_host::group.has_value()) return ncclInvalidUsage;
  for (const ncclComm_t communicator : *on_host::group) communicator->is_in_group = false;
  const bool is_empty = on_host::group->empty();
  on_host::group.reset();
  return is_empty ? ncclSuccess : ncclInProgress;
}
