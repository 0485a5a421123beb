// Work on a sequence by several threads, with the results taken in the order of the sequence.
//
//   read()   the next item, or nothing after the last; by one thread at a time, in order
//   work(i)  the result of an item; by all threads at once
//   write(r) takes a result; by one thread at a time, in order
//
// Bounded: no more than kWindow items per thread are anywhere between read() and write(). The first
// failure in the order of the sequence, whichever of the three it comes from, ends the whole and is
// thrown, so what happens does not depend on the threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace redspine {

template <typename Item, typename Result>
class OrderedWork {
 public:
  struct Steps {
    std::function<std::optional<Item>()> read;
    std::function<Result(Item)> work;
    std::function<void(Result)> write;
  };

  /// Runs the steps to the end of the sequence on `num_threads` threads, the caller's among them.
  static void run(int num_threads, Steps steps) {
    OrderedWork whole(num_threads, std::move(steps));
    std::vector<std::jthread> threads;
    for (int i = 1; i < num_threads; ++i) threads.emplace_back([&whole] { whole.take_part(); });
    whole.take_part();
    threads.clear();
    if (whole.failure_) std::rethrow_exception(whole.failure_);
  }

 private:
  static constexpr std::int64_t kWindow = 3;

  using Outcome = std::variant<Result, std::exception_ptr>;

  OrderedWork(int num_threads, Steps steps)
      : steps_(std::move(steps)), window_(kWindow * num_threads) {}

  void take_part() {
    for (;;) {
      std::int64_t number = 0;
      std::optional<Item> item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return is_ended_ || (!is_reading_ && num_read_ - num_written_ < window_);
        });
        if (is_ended_) return;
        number = num_read_++;
        is_reading_ = true;
      }
      std::optional<Outcome> outcome;
      try {
        item = steps_.read();
      } catch (...) {
        outcome = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        is_reading_ = false;
        if (!item) is_ended_ = true;
      }
      changed_.notify_all();
      if (!item && !outcome) return;
      if (!outcome) outcome = work_on(std::move(*item));
      deliver(number, std::move(*outcome));
    }
  }

  Outcome work_on(Item item) {
    try {
      return steps_.work(std::move(item));
    } catch (...) {
      return std::current_exception();
    }
  }

  /// Writes this outcome and those that waited for it; leaves it to wait if its turn is not yet or
  /// another thread is writing.
  void deliver(std::int64_t number, Outcome outcome) {
    std::unique_lock lock(mutex_);
    waiting_.emplace(number, std::move(outcome));
    if (is_writing_) return;
    is_writing_ = true;
    for (auto next = waiting_.find(num_written_); next != waiting_.end() && !failure_;
         next = waiting_.find(num_written_)) {
      Outcome present = std::move(next->second);
      waiting_.erase(next);
      lock.unlock();
      std::exception_ptr failure = write(std::move(present));
      lock.lock();
      ++num_written_;
      if (failure) {
        failure_ = std::move(failure);
        is_ended_ = true;
      }
      changed_.notify_all();
    }
    is_writing_ = false;
  }

  std::exception_ptr write(Outcome outcome) {
    if (std::holds_alternative<std::exception_ptr>(outcome)) {
      return std::get<std::exception_ptr>(std::move(outcome));
    }
    try {
      steps_.write(std::get<Result>(std::move(outcome)));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  Steps steps_;
  std::int64_t window_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t num_read_ = 0;
  std::int64_t num_written_ = 0;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_ended_ = false;  // nothing more is read: the end, or a failure
  std::exception_ptr failure_;
  std::map<std::int64_t, Outcome> waiting_;
};

}  // namespace redspine
