#include "parallel/nccl/nccl_communicator.h"

#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "parallel/group/failure.h"
#include "parallel/group/mpi_handle.h"
#include "parallel/group/mpi_session.h"
#include "parallel/nccl/nccl_comm.h"
#include "tensor/cuda/check.h"
#include "tensor/cuda/cuda_stream.h"
#include "tensor/cuda/handles.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kWatchInterval = 100ms;

// One for each stream, made by rank 0. Collective.
using CommIds = std::array<ncclUniqueId, kNumStreams>;
CommIds agree_on_ids(const ProcessGroup& group) {
  CommIds ids{};
  if (group.rank() == 0) {
    for (ncclUniqueId& id : ids) {
      const ncclResult_t result = ncclGetUniqueId(&id);
      if (result != ncclSuccess) {
        throw Error(fmt::format("ncclGetUniqueId failed: {}", ncclGetErrorString(result)));
      }
    }
  }
  const std::string mine(reinterpret_cast<const char*>(&ids), sizeof(ids));
  const std::string of_rank_0 = group.all_gather(mine).front();
  std::memcpy(&ids, of_rank_0.data(), sizeof(ids));
  return ids;
}

const char* name_of_op(ReduceOp op) { return op == ReduceOp::sum ? "sum" : "max"; }

// "1000 f32"
std::string size_text(ConstTensorView values) {
  return fmt::format("{} {}", values.count(), name_of(values.dtype()));
}

[[noreturn]] void reject_order() { throw Error("a sum in a given order is between CPUs alone"); }

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const ProcessGroup& group, Device& device, const NcclTimeouts& timeouts)
      : rank_(group.rank()),
        size_(group.size()),
        device_(device),
        timeouts_(timeouts),
        ids_(agree_on_ids(group)) {
    check_cuda(cudaGetDevice(&device_number_), "cudaGetDevice");
    watchdog_ = std::thread([this] { watch(); });
  }

  // The watchdog looks on to the end, since that may be what hangs.
  ~NcclCommunicator() override {
    finish_streams(device_);
    decltype(comms_) comms;
    {
      const std::lock_guard lock(mutex_);
      comms.swap(comms_);
      ending_since_ = Clock::now();
    }
    for (auto& comm : comms) comm = nullptr;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    watchdog_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(TensorView values, ReduceOp op, Stream stream) override {
    if (values.count() == 0) return;
    const std::string what =
        fmt::format("all-reduce ({}) of {}", name_of_op(op), size_text(values));
    give(stream, what, [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
      comm.all_reduce(values, op, cuda, wait);
    });
  }

  void begin_step(std::int64_t step) override { step_ = step; }

 private:
  void enqueue_reduce_scatter(TensorView values, std::vector<Range> shares, ReduceOp op,
                              Stream stream) override {
    const std::string what =
        fmt::format("reduce-scatter ({}) of {}", name_of_op(op), size_text(values));
    give(stream, what, [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
      comm.reduce_scatter(values, shares, op, cuda, wait);
    });
  }
  void enqueue_all_reduce_in_order(TensorView /*out*/, std::vector<ConstTensorView> /*summands*/,
                                   const SumOrder& /*order*/, Stream /*stream*/) override {
    reject_order();
  }
  void enqueue_reduce_scatter_in_order(TensorView /*out*/,
                                       std::vector<ConstTensorView> /*summands*/,
                                       std::vector<Range> /*shares*/, const SumOrder& /*order*/,
                                       Stream /*stream*/) override {
    reject_order();
  }
  void enqueue_all_gather(TensorView values, std::vector<Range> shares, Stream stream) override {
    give(stream, fmt::format("all-gather of {}", size_text(values)),
         [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
           comm.all_gather(values, shares, cuda, wait);
         });
  }
  void enqueue_broadcast(TensorView values, int root, Stream stream) override {
    give(stream, fmt::format("broadcast from rank {} of {}", root, size_text(values)),
         [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
           comm.broadcast(values, root, cuda, wait);
         });
  }
  void enqueue_send(ConstTensorView values, int to, Stream stream) override {
    give(stream, fmt::format("send to rank {} of {}", to, size_text(values)),
         [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
           comm.send(values, to, cuda, wait);
         });
  }
  void enqueue_recv(TensorView values, int from, Stream stream) override {
    give(stream, fmt::format("recv from rank {} of {}", from, size_text(values)),
         [&](NcclComm& comm, cudaStream_t cuda, const NcclWait& wait) {
           comm.recv(values, from, cuda, wait);
         });
  }

  // Has NCCL take `call`, and watches over it.
  template <class Call>
  void give(Stream stream, const std::string& call_text, const Call& call) {
    const NcclWait wait{
        .what = fmt::format("NCCL {} over {} ranks, step {}", call_text, size_, step_),
        .timeout = timeouts_.collective};
    NcclComm& comm = comm_of(stream, wait.what);
    const cudaStream_t cuda = cuda_stream(device_, stream);
    call(comm, cuda, wait);
    const std::lock_guard lock(mutex_);
    cuda::EventOwner done = take_event();
    check_cuda(cudaEventRecord(done.get(), cuda), "cudaEventRecord");
    pending_.push_back({.done = std::move(done), .what = wait.what, .since = Clock::now()});
  }

  // A collective that was given to a stream and is not known to be done.
  struct Pending {
    cuda::EventOwner done;
    std::string what;
    Clock::time_point since;
  };

  // Memory for its buffers goes only to streams that are used.
  NcclComm& comm_of(Stream stream, const std::string& for_what) {
    const auto index = static_cast<std::size_t>(stream);
    std::unique_ptr<NcclComm>& comm = comms_[index];
    if (comm == nullptr) {
      const NcclWait wait{.what = for_what + ", the first of its stream",
                          .timeout = timeouts_.start};
      auto made = std::make_unique<NcclComm>(ids_[index], rank_, size_, wait);
      const std::lock_guard lock(mutex_);
      comm = std::move(made);
    }
    return *comm;
  }

  cuda::EventOwner take_event() {
    if (free_events_.empty()) return cuda::make_event();
    cuda::EventOwner event = std::move(free_events_.back());
    free_events_.pop_back();
    return event;
  }

  void watch() {
    cudaSetDevice(device_number_);  // else the first call would take memory of GPU 0
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kWatchInterval, [this] { return stopping_; })) {
      forget_what_is_done();
      for (const std::unique_ptr<NcclComm>& comm : comms_) {
        if (comm == nullptr) continue;
        const std::optional<std::string> failure = comm->failure();
        if (failure) end_job(*failure);
      }
      const auto now = Clock::now();
      if (!pending_.empty() && now - pending_.front().since > timeouts_.collective) {
        end_job(fmt::format("not done after {}: a rank is missing or stuck",
                            to_seconds(timeouts_.collective)));
      }
      if (ending_since_ && now - *ending_since_ > timeouts_.start) {
        end_job(fmt::format("not ended after {}", to_seconds(timeouts_.start)));
      }
    }
  }

  void forget_what_is_done() {
    std::erase_if(pending_, [this](Pending& pending) {
      if (cudaEventQuery(pending.done.get()) != cudaSuccess) return false;
      free_events_.push_back(std::move(pending.done));
      return true;
    });
  }

  // Names the oldest collective that is not done: later ones only wait for it. NCCL is not asked to
  // abort, which may wait for the same rank: that the processes end is what frees the GPUs.
  [[noreturn]] void end_job(const std::string& failure) {
    const std::string what = pending_.empty() ? fmt::format("NCCL communicator of {} ranks", size_)
                                              : pending_.front().what;
    const ProcessGroup world(std::make_unique<ProcessGroup::Handle>(MPI_COMM_WORLD));
    log_from_rank(world, fmt::format("{}: {}", what, failure));
    MpiSession::abort(EXIT_FAILURE);
  }

  int rank_;
  int size_;
  Device& device_;
  NcclTimeouts timeouts_;
  CommIds ids_;  // [stream]
  int device_number_ = 0;
  std::int64_t step_ = 0;
  std::array<std::unique_ptr<NcclComm>, kNumStreams> comms_;  // [stream]

  std::mutex mutex_;  // of everything below, and of setting comms_
  std::condition_variable wake_;
  std::deque<Pending> pending_;  // oldest first
  std::vector<cuda::EventOwner> free_events_;
  std::optional<Clock::time_point> ending_since_;
  bool stopping_ = false;
  std::thread watchdog_;
};

}  // namespace

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "of an unknown version";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<Communicator> make_nccl_communicator(const ProcessGroup& group, Device& device,
                                                     const NcclTimeouts& timeouts) {
  constexpr int kKeep = 0;
  setenv("NCCL_ALGO", "Ring", kKeep);
  return std::make_unique<NcclCommunicator>(group, device, timeouts);
}

}  // namespace redspine
