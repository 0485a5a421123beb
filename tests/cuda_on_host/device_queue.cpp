#include "tests/cuda_on_host/device_queue.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "tests/cuda_on_host/block.h"
#include "tests/cuda_on_host/random.h"

namespace on_host {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollInterval = 50us;  // while all heads wait for other ranks

std::uint64_t number_of_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

// Lives as long as the process: the device's thread may be in the middle of something.
DeviceQueue& DeviceQueue::instance() {
  static auto* const kQueue = new DeviceQueue;
  return *kQueue;
}

DeviceQueue::DeviceQueue() : streams_(1) {
  read_environment();
  std::thread([this] { run(); }).detach();
}

cudaStream_t DeviceQueue::create_stream() {
  const std::scoped_lock lock(mutex_);
  return &streams_.emplace_back();
}

cudaError_t DeviceQueue::destroy_stream(cudaStream_t stream) {
  const cudaError_t error = synchronize(stream);
  const std::scoped_lock lock(mutex_);
  streams_.remove_if([&](const CUstream_st& other) { return &other == stream; });
  return error;
}

cudaError_t DeviceQueue::give(cudaStream_t stream, Work work) {
  const std::scoped_lock lock(mutex_);
  CUstream_st* target = find(stream);
  if (target == nullptr) return cudaErrorInvalidResourceHandle;
  if (fault_ != cudaSuccess) return fault_;
  target->work.push_back(std::move(work));
  ++target->num_given;
  for_device_.notify_one();
  return cudaSuccess;
}

cudaError_t DeviceQueue::record(cudaEvent_t event, cudaStream_t stream) {
  auto ticket = std::make_shared<Ticket>();
  {
    const std::scoped_lock lock(mutex_);
    event->latest = ticket;
  }
  // Work runs without the lock; the flag is only looked at by those who hold it.
  return give(stream, [this, ticket] {
    const std::scoped_lock lock(mutex_);
    return ticket->done = true;
  });
}

cudaError_t DeviceQueue::wait_for_event(cudaStream_t stream, cudaEvent_t event) {
  std::shared_ptr<Ticket> ticket;
  {
    const std::scoped_lock lock(mutex_);
    ticket = event->latest;
  }
  if (ticket == nullptr) return cudaSuccess;
  return give(stream, [this, ticket] {
    const std::scoped_lock lock(mutex_);
    return ticket->done;
  });
}

cudaError_t DeviceQueue::synchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex_);
  CUstream_st* target = find(stream);
  if (target == nullptr) return cudaErrorInvalidResourceHandle;
  return wait(lock, [target, tail = target->num_given] { return target->num_done >= tail; });
}

cudaError_t DeviceQueue::synchronize(cudaEvent_t event) {
  std::unique_lock lock(mutex_);
  return wait(lock, [ticket = event->latest] { return ticket == nullptr || ticket->done; });
}

cudaError_t DeviceQueue::synchronize_all() {
  std::unique_lock lock(mutex_);
  return wait(lock, [this] { return !has_work(); });
}

cudaError_t DeviceQueue::query(cudaStream_t stream) {
  const std::scoped_lock lock(mutex_);
  const CUstream_st* target = find(stream);
  if (target == nullptr) return cudaErrorInvalidResourceHandle;
  if (fault_ != cudaSuccess) return fault_;
  return target->work.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t DeviceQueue::query(cudaEvent_t event) {
  const std::scoped_lock lock(mutex_);
  if (fault_ != cudaSuccess) return fault_;
  return event->latest == nullptr || event->latest->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t DeviceQueue::fault() const {
  const std::scoped_lock lock(mutex_);
  return fault_;
}

std::string DeviceQueue::fault_text() const {
  const std::scoped_lock lock(mutex_);
  return fault_text_;
}

void DeviceQueue::fail(cudaError_t error, const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (fault_ != cudaSuccess) return;
  fault_ = error;
  fault_text_ = fmt::format("{} (REDSPINE_ON_HOST_SEED={})", text, seed_);
  for (CUstream_st& stream : streams_) {
    stream.work.clear();
    stream.num_done = stream.num_given;
  }
  for_hosts_.notify_all();
}

void DeviceQueue::reset() {
  synchronize_all();
  const std::scoped_lock lock(mutex_);
  fault_ = cudaSuccess;
  fault_text_.clear();
  read_environment();
}

void DeviceQueue::read_environment() {
  seed_ = number_of_environment("REDSPINE_ON_HOST_SEED", 1);
  patience_ = std::chrono::milliseconds(
      number_of_environment("REDSPINE_ON_HOST_PATIENCE_MILLISECONDS", 100));
  num_random_ = 0;
}

std::uint64_t DeviceQueue::random_seed() {
  const std::scoped_lock lock(mutex_);
  return redspine::random_key(seed_, ++num_random_);
}

CUstream_st* DeviceQueue::find(cudaStream_t stream) {
  if (stream == nullptr) return &streams_.front();
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const CUstream_st& other) { return &other == stream; });
  return found == streams_.end() ? nullptr : &*found;
}

cudaError_t DeviceQueue::wait(std::unique_lock<std::mutex>& lock,
                              const std::function<bool()>& is_done) {
  const auto waiter = waiters_.insert(waiters_.end(), &is_done);
  for_device_.notify_one();
  for_hosts_.wait(lock, [&] { return fault_ != cudaSuccess || is_done(); });
  waiters_.erase(waiter);
  return fault_;
}

bool DeviceQueue::has_work() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const CUstream_st& stream) { return !stream.work.empty(); });
}

bool DeviceQueue::somebody_waits() const {
  return fault_ == cudaSuccess &&
         std::any_of(waiters_.begin(), waiters_.end(),
                     [](const std::function<bool()>* is_done) { return !(*is_done)(); });
}

void DeviceQueue::run() {
  omp_set_num_threads(1);  // ranks share this machine
  std::unique_lock lock(mutex_);
  while (true) {
    for_device_.wait(lock, [this] { return has_work(); });
    // A waiting host drives the device. Without one it is patient, and then does all there is.
    const bool is_patient =
        for_device_.wait_for(lock, patience_, [this] { return somebody_waits(); });
    while (is_patient ? somebody_waits() : has_work()) {
      if (run_one(lock)) continue;
      lock.unlock();
      std::this_thread::sleep_for(kPollInterval);
      lock.lock();
    }
  }
}

// One piece of work of a stream whose head can go on. False where none could.
bool DeviceQueue::run_one(std::unique_lock<std::mutex>& lock) {
  std::vector<CUstream_st*> heads;
  for (CUstream_st& stream : streams_) {
    if (!stream.work.empty()) heads.push_back(&stream);
  }
  Random random(redspine::random_key(seed_, ++num_random_));
  random.shuffle(heads);
  for (CUstream_st* stream : heads) {
    const Work work = stream->work.front();
    bool done = false;
    lock.unlock();
    try {
      done = work();
    } catch (const std::exception& error) {
      fail(cudaErrorLaunchFailure, error.what());
    }
    lock.lock();
    if (fault_ != cudaSuccess) return true;
    if (done) {
      stream->work.pop_front();
      ++stream->num_done;
      for_hosts_.notify_all();
      return true;
    }
  }
  return false;
}

}  // namespace on_host
