#include "data/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace redspine {
namespace {

using Work = OrderedWork<int, int>;

/// Counts from 0 to below `end`.
std::function<std::optional<int>()> counter(int end) {
  return
      [next = 0, end]() mutable { return next < end ? std::optional<int>(next++) : std::nullopt; };
}

void wait_a_little(int i) {
  if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
}

TEST(OrderedWork, WritesInTheOrderOfReadingWhateverTheThreads) {
  for (const int num_threads : {1, 2, 3, 8}) {
    std::vector<int> written;
    Work::run(num_threads, {.read = counter(500),
                            .work =
                                [](int i) {
                                  wait_a_little(i);
                                  return i * i;
                                },
                            .write = [&](int result) { written.push_back(result); }});
    ASSERT_EQ(written.size(), 500u);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(written[static_cast<std::size_t>(i)], i * i);
  }
}

TEST(OrderedWork, HoldsABoundedNumberOfItems) {
  constexpr int kNumThreads = 4;
  std::atomic<int> num_held = 0;
  std::atomic<int> most_held = 0;
  const auto count = counter(400);
  const auto wait_until_more_are_held = [&] {
    using std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + std::chrono::seconds(20);
    while (most_held <= kNumThreads && steady_clock::now() < deadline) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  Work::run(kNumThreads, {.read =
                              [&, count]() mutable {
                                const int held = ++num_held;
                                if (held > most_held) most_held = held;
                                return count();
                              },
                          .work =
                              [&](int i) {
                                // The first is slow, so that all others have to wait for it.
                                if (i == 0) wait_until_more_are_held();
                                return i;
                              },
                          .write = [&](int /*result*/) { --num_held; }});
  EXPECT_LE(most_held, 3 * kNumThreads + 1);
  EXPECT_GT(most_held, kNumThreads);
}

/// What is thrown, and how many results were written before.
std::pair<std::string, int> failure_of(int num_threads, Work::Steps steps) {
  int num_written = 0;
  const auto write = steps.write;
  steps.write = [&](int result) {
    write(result);
    ++num_written;
  };
  try {
    Work::run(num_threads, steps);
  } catch (const std::runtime_error& error) {
    return {error.what(), num_written};
  }
  return {"", num_written};
}

TEST(OrderedWork, ThrowsTheFirstFailureInOrderAfterAllResultsBeforeIt) {
  for (const int num_threads : {1, 2, 8}) {
    for (int run = 0; run < 20; ++run) {
      const auto fails_from = [](int first) {
        return [first](int i) {
          wait_a_little(i);
          if (i >= first) throw std::runtime_error("item " + std::to_string(i));
          return i;
        };
      };
      const auto nothing = [](int /*result*/) {};
      EXPECT_EQ(
          failure_of(num_threads, {.read = counter(100), .work = fails_from(49), .write = nothing}),
          std::pair(std::string("item 49"), 49));
      const auto refuses = [](int result) {
        if (result == 30) throw std::runtime_error("written");
      };
      EXPECT_EQ(
          failure_of(num_threads, {.read = counter(100), .work = fails_from(49), .write = refuses}),
          std::pair(std::string("written"), 30));
      const auto breaks = [next = 0]() mutable -> std::optional<int> {
        if (next == 20) throw std::runtime_error("read");
        return next++;
      };
      EXPECT_EQ(failure_of(num_threads, {.read = breaks, .work = fails_from(49), .write = nothing}),
                std::pair(std::string("read"), 20));
    }
  }
}

TEST(OrderedWork, EndsAtOnceWithNothingToDo) {
  Work::run(4, {.read = counter(0),
                .work = [](int i) { return i; },
                .write = [](int /*result*/) { FAIL(); }});
}

}  // namespace
}  // namespace redspine
