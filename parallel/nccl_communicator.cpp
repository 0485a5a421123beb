#include "parallel/nccl_communicator.h"

#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "parallel/mpi_handle.h"
#include "tensor/cuda/check.h"
#include "tensor/cuda/cuda_stream.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kWatchInterval = 100ms;
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

// The ranks' NCCL communicator of one stream. Calls on it do not block, so that a peer which does
// not come is noticed; the main thread alone makes them.
class Ring {
 public:
  Ring(const RankGroup& group, std::chrono::milliseconds patience) {
    ncclUniqueId id{};
    if (group.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string bytes =
        group.all_gather(std::string(reinterpret_cast<const char*>(&id), sizeof(id))).front();
    std::memcpy(&id, bytes.data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t started =
        ncclCommInitRankConfig(&communicator_, group.size(), id, group.rank(), &config);
    finish(started, "ncclCommInitRankConfig", patience);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { ncclCommDestroy(communicator_); }

  void all_reduce(TensorView values, ReduceOp op, cudaStream_t stream,
                  std::chrono::milliseconds patience) {
    finish(ncclAllReduce(values.raw(), values.raw(), static_cast<std::size_t>(values.count()),
                         nccl_type(values.dtype()), op == ReduceOp::sum ? ncclSum : ncclMax,
                         communicator_, stream),
           "ncclAllReduce", patience);
  }

  // From any thread: why it cannot go on, or nothing.
  std::optional<std::string> failure() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
    if (asked != ncclSuccess) return cause(asked, communicator_);
    if (state == ncclSuccess || state == ncclInProgress) return std::nullopt;
    return cause(state, communicator_);
  }

  // From any thread. Frees a stream that waits for a peer.
  void abort() { ncclCommAbort(communicator_); }

 private:
  void check(ncclResult_t result, const char* call) const {
    if (result == ncclSuccess) return;
    throw Error(fmt::format("{} failed: {}", call, cause(result, communicator_)));
  }

  // Waits until NCCL has taken the call.
  void finish(ncclResult_t result, const char* call, std::chrono::milliseconds patience) const {
    const auto end = Clock::now() + patience;
    while (result == ncclInProgress) {
      if (Clock::now() >= end) {
        throw Error(fmt::format("{}: not all ranks have come within {} s", call,
                                std::chrono::duration<double>(patience).count()));
      }
      std::this_thread::sleep_for(kPollInterval);
      check(ncclCommGetAsyncError(communicator_, &result), "ncclCommGetAsyncError");
    }
    check(result, call);
  }

  ncclComm_t communicator_ = nullptr;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const RankGroup& group, Device& device, const NcclPatience& patience)
      : group_(group.split(0)), device_(device), patience_(patience) {
    check_cuda(cudaGetDevice(&device_number_), "cudaGetDevice");
    watchdog_ = std::thread([this] { watch(); });
  }

  // The watchdog looks on until the last collective is done, since that may be the one that hangs.
  ~NcclCommunicator() override {
    for (int stream = 0; stream < kNumStreams; ++stream) {
      try {
        device_.synchronize(static_cast<Stream>(stream));
      } catch (const std::exception&) {
        // Reported where the stream's result was waited for; here the job is already ending.
        continue;
      }
    }
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    watchdog_.join();
    for (const Pending& pending : pending_) cudaEventDestroy(pending.done);
    for (const cudaEvent_t event : free_events_) cudaEventDestroy(event);
  }

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }

  void all_reduce(TensorView values, ReduceOp op, Stream stream) override {
    if (values.count() == 0) return;
    Ring& ring = ring_of(stream);
    const cudaStream_t cuda = cuda_stream(device_, stream);
    ring.all_reduce(values, op, cuda, patience_.collective);
    const std::lock_guard lock(mutex_);
    const cudaEvent_t done = take_event();
    check_cuda(cudaEventRecord(done, cuda), "cudaEventRecord");
    pending_.push_back({.done = done,
                        .stream = stream,
                        .count = values.count(),
                        .dtype = values.dtype(),
                        .op = op,
                        .step = step_,
                        .since = Clock::now()});
  }

  void begin_step(std::int64_t step) override {
    const std::lock_guard lock(mutex_);
    step_ = step;
  }

 private:
  // A collective that was given to a stream and is not known to be done.
  struct Pending {
    cudaEvent_t done;
    Stream stream;
    std::int64_t count;
    DType dtype;
    ReduceOp op;
    std::int64_t step;
    Clock::time_point since;
  };

  static std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }

  // Memory for its buffers goes only to streams that are used.
  Ring& ring_of(Stream stream) {
    std::unique_ptr<Ring>& ring = rings_[index(stream)];
    if (ring == nullptr) {
      auto made = std::make_unique<Ring>(group_, patience_.start);
      const std::lock_guard lock(mutex_);
      ring = std::move(made);
    }
    return *ring;
  }

  cudaEvent_t take_event() {
    cudaEvent_t event = nullptr;
    if (free_events_.empty()) {
      check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
    } else {
      event = free_events_.back();
      free_events_.pop_back();
    }
    return event;
  }

  void watch() {
    cudaSetDevice(device_number_);  // else the first call would take memory of GPU 0
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kWatchInterval, [this] { return stopping_; })) {
      forget_what_is_done();
      for (const std::unique_ptr<Ring>& ring : rings_) {
        if (ring == nullptr) continue;
        const std::optional<std::string> failure = ring->failure();
        if (failure) end_job(*failure);
      }
      if (!pending_.empty() && Clock::now() - pending_.front().since > patience_.collective) {
        end_job(fmt::format("not done after {} s: a rank is missing or stuck",
                            std::chrono::duration<double>(patience_.collective).count()));
      }
    }
  }

  void forget_what_is_done() {
    std::erase_if(pending_, [this](const Pending& pending) {
      if (cudaEventQuery(pending.done) != cudaSuccess) return false;
      free_events_.push_back(pending.done);
      return true;
    });
  }

  // Names the oldest collective that is not done: later ones only wait for it.
  [[noreturn]] void end_job(const std::string& failure) {
    std::string what = "NCCL communicator";
    if (!pending_.empty()) {
      const Pending& oldest = pending_.front();
      what = fmt::format("NCCL all-reduce ({}) of {} {} over {} ranks, step {}",
                         oldest.op == ReduceOp::sum ? "sum" : "max", oldest.count,
                         name_of(oldest.dtype), group_.size(), oldest.step);
    }
    int world_rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const std::string line =
        fmt::format("[rank {} @ {}] {}: {}\n", world_rank, RankGroup::host_name(), what, failure);
    std::fwrite(line.data(), 1, line.size(), stderr);
    for (const std::unique_ptr<Ring>& ring : rings_) {
      if (ring != nullptr) ring->abort();
    }
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::abort();  // MPI_Abort does not return, but is not declared so
  }

  RankGroup group_;
  Device& device_;
  NcclPatience patience_;
  int device_number_ = 0;
  std::array<std::unique_ptr<Ring>, kNumStreams> rings_;  // [stream]

  std::mutex mutex_;  // of everything below, and of setting rings_
  std::condition_variable wake_;
  std::deque<Pending> pending_;  // oldest first
  std::vector<cudaEvent_t> free_events_;
  std::int64_t step_ = 0;
  bool stopping_ = false;
  std::thread watchdog_;
};

}  // namespace

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "of an unknown version";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<Communicator> make_nccl_communicator(const RankGroup& group, Device& device,
                                                     const NcclPatience& patience) {
  constexpr int kKeep = 0;
  setenv("NCCL_ALGO", "Ring", kKeep);
  return std::make_unique<NcclCommunicator>(group, device, patience);
}

}  // namespace redspine
