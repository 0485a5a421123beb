// Streams and the one OS thread that plays the device.
//
// Work given to a stream is deferred until a host thread waits for something; then the device runs
// the heads of the streams in a random order that respects streams and events, until that something
// is done and no further. Forgotten event orders so become wrong results under some seed. As a real
// device works by itself, pending work also starts when nobody has asked for a while.
//
// REDSPINE_ON_HOST_SEED chooses the order (default 1), REDSPINE_ON_HOST_PATIENCE_MILLISECONDS is
// the while (default 100).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/cuda_on_host/runtime_api.h"

/// One recording of an event: done when the stream came there.
struct Ticket {
  bool done = false;
};

struct CUevent_st {
  std::shared_ptr<Ticket> latest;  // null: never recorded, which counts as done
};

/// A piece of work: called until it returns true. False means "not yet": a collective whose peers
/// have not come. Throws a fault.
using Work = std::function<bool()>;

struct CUstream_st {
  std::deque<Work> work;
  std::uint64_t num_given = 0;
  std::uint64_t num_done = 0;
};

namespace on_host {

class DeviceQueue {
 public:
  static DeviceQueue& instance();

  cudaStream_t create_stream();
  /// Waits until the stream is empty, as its work may not be lost.
  cudaError_t destroy_stream(cudaStream_t stream);

  cudaError_t give(cudaStream_t stream, Work work);
  cudaError_t record(cudaEvent_t event, cudaStream_t stream);
  cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t event);

  cudaError_t synchronize(cudaStream_t stream);
  cudaError_t synchronize(cudaEvent_t event);
  cudaError_t synchronize_all();
  cudaError_t query(cudaStream_t stream);
  cudaError_t query(cudaEvent_t event);

  /// The fault that ended all work, or success.
  cudaError_t fault() const;
  std::string fault_text() const;
  void fail(cudaError_t error, const std::string& text);
  void reset();
  std::uint64_t random_seed();

 private:
  DeviceQueue();
  void read_environment();
  CUstream_st* find(cudaStream_t stream);
  cudaError_t wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_done);
  bool has_work() const;
  bool somebody_waits() const;
  void run();
  bool run_one(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable for_device_;
  std::condition_variable for_hosts_;
  std::list<CUstream_st> streams_;                   // the first is the null stream
  std::list<const std::function<bool()>*> waiters_;  // host threads: what each waits for
  cudaError_t fault_ = cudaSuccess;
  std::string fault_text_;
  std::uint64_t seed_ = 0;
  std::chrono::milliseconds patience_{};
  std::uint64_t num_random_ = 0;
};

}  // namespace on_host
