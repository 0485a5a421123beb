// The ranks' NCCL communicator of one stream. Its calls do not block, so that a rank which does not
// come is noticed, and there are never two at a time, which NCCL forbids: the main thread gives
// work while a watchdog asks how it goes. Owns the communicator; made and ended by all its ranks.
#pragma once

#include <nccl.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "parallel/group/process_group.h"
#include "parallel/partition.h"
#include "tensor/view.h"

namespace redspine {

/// How long something is waited for, and what it is called where it does not come.
struct NcclWait {
  std::string what;
  std::chrono::milliseconds timeout;
};

/// "10.5 s"
std::string to_seconds(std::chrono::milliseconds time);

class NcclComm {
 public:
  /// Waits for the `size` ranks that are given the same `id`. Throws Error where they do not come.
  NcclComm(const ncclUniqueId& id, int rank, int size, const NcclWait& wait);
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;
  ~NcclComm() { ncclCommDestroy(communicator_); }

  /// Enqueue what Communicator's calls of the same names say; each waits until NCCL has taken the
  /// call. Throw Error where it does not.
  void all_reduce(TensorView values, ReduceOp op, cudaStream_t stream, const NcclWait& wait);
  void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op,
                      cudaStream_t stream, const NcclWait& wait);
  void all_gather(TensorView values, std::span<const Range> shares, cudaStream_t stream,
                  const NcclWait& wait);
  void broadcast(TensorView values, int root, cudaStream_t stream, const NcclWait& wait);
  void send(ConstTensorView values, int to, cudaStream_t stream, const NcclWait& wait);
  void recv(TensorView values, int from, cudaStream_t stream, const NcclWait& wait);

  /// From any thread, without waiting: why it cannot go on. Nothing where it can, or where a call
  /// is under way, which reports its failure itself.
  std::optional<std::string> failure() const;

 private:
  void finish(std::unique_lock<std::mutex>& lock, ncclResult_t result, const NcclWait& wait);
  TensorView own_share(TensorView values, std::span<const Range> shares) const;

  mutable std::mutex mutex_;  // of every call on the communicator
  ncclComm_t communicator_ = nullptr;
  int rank_;
};

}  // namespace redspine
