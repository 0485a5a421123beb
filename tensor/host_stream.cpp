#include "tensor/host_stream.h"

#include <utility>

namespace redspine {

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HostStream::enqueue(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(function));
    ++num_enqueued_;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  work_.notify_one();
}

void HostStream::wait() {
  Lock lock(mutex_);
  finish(lock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::uint64_t HostStream::tail() const {
  const std::lock_guard lock(mutex_);
  return num_enqueued_;
}

void HostStream::wait_until(std::uint64_t tail) {
  Lock lock(mutex_);
  progress_.wait(lock, [this, tail] { return num_done_ >= tail; });
  if (failure_) std::rethrow_exception(failure_);
}

void HostStream::drain() noexcept {
  Lock lock(mutex_);
  finish(lock);
}

void HostStream::finish(Lock& lock) {
  while (!is_running_ && !queue_.empty()) run_next(lock);
  progress_.wait(lock, [this] { return num_done_ == num_enqueued_; });
}

void HostStream::run() {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !is_running_ && (stopping_ || !queue_.empty()); });
    if (queue_.empty()) return;
    run_next(lock);
  }
}

void HostStream::run_next(Lock& lock) {
  std::function<void()> function = std::move(queue_.front());
  queue_.pop_front();
  std::exception_ptr failure = failure_;
  is_running_ = true;
  lock.unlock();
  if (!failure) {
    try {
      function();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  function = nullptr;  // what it captured ends before anyone is told that it is done
  lock.lock();
  is_running_ = false;
  failure_ = failure;
  ++num_done_;
  progress_.notify_all();
}

}  // namespace redspine
