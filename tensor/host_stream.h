// A stream of host functions: one at a time, first in first out, by a thread of its own or by the
// one that waits for them.
//
// The thread starts with the first function. One thread gives work and waits (the rank's main
// thread); a function of another stream may only call `wait_until`. Local to a process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace redspine {

class HostStream {
 public:
  HostStream() = default;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  /// Runs what is left, then ends the thread. An exception that nobody waited for is lost.
  ~HostStream();

  /// Once a function has thrown, those behind it are dropped until `wait` has reported it: they
  /// would work on results that do not exist.
  void enqueue(std::function<void()> function);

  /// Returns when everything enqueued so far is done; what the stream's thread has not begun is
  /// done here, since waking it takes longer than a short function. Rethrows the stream's first
  /// exception, and forgets it.
  void wait();

  /// The number of functions enqueued so far: what `wait_until` takes.
  std::uint64_t tail() const;

  /// Returns when the first `tail` functions are done. Throws the stream's exception, where it has
  /// one, and leaves it for `wait`.
  void wait_until(std::uint64_t tail);

  /// Like `wait`, and keeps the exception.
  void drain() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void run_next(Lock& lock);
  void finish(Lock& lock);

  mutable std::mutex mutex_;
  std::condition_variable work_;      // for the stream's thread
  std::condition_variable progress_;  // for those who wait
  std::deque<std::function<void()>> queue_;
  std::uint64_t num_enqueued_ = 0;
  std::uint64_t num_done_ = 0;
  bool is_running_ = false;  // a function
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace redspine
