// A number in shared memory that one rank raises and others wait for. Zeros are a progress of 0.
#pragma once

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace redspine {

inline constexpr std::size_t kCacheLineBytes = 64;

struct alignas(kCacheLineBytes) Progress {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> num_asleep;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  // Either this sees who sleeps, or the kernel sees the new value and lets nobody fall asleep: all
  // accesses are in one order.
  void raise_to(std::uint64_t number) {
    value.store(static_cast<std::uint32_t>(number));
    if (num_asleep.load() > 0) syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  // Looks for some microseconds, then sleeps: the processor may be needed by what is waited for.
  void wait_for(std::uint64_t number) {
    constexpr int kNumLooks = 500;
    for (int look = 0;; ++look) {
      const std::uint32_t seen = value.load();
      // The low half of the number, which wraps around; ranks are a few pieces apart at most.
      if (static_cast<std::int32_t>(seen - static_cast<std::uint32_t>(number)) >= 0) return;
      if (look < kNumLooks) {
        _mm_pause();
      } else {
        ++num_asleep;
        syscall(SYS_futex, &value, FUTEX_WAIT, seen, nullptr, nullptr, 0);
        --num_asleep;
      }
    }
  }
};

}  // namespace redspine
