#include "parallel/shared_memory/shared_memory_all_reduce.h"

#include <fmt/format.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "parallel/partition.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// A long vector goes through the shared memory in pieces, which stay in the caches. A rank gives
// its next piece before it waits for one, and takes a result only after it has worked on the next;
// so three are on their way, and hardly anybody waits. A vector of fewer than four pieces is cut
// into smaller ones, of kLeastPieceBytes at least: the first and the last of them overlap with
// nothing.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kLeastPieceBytes = std::size_t{64} << 10;
constexpr std::size_t kNumSlots = 3;
constexpr std::size_t kCacheLineBytes = 64;
constexpr int kMaxRanks = 64;
constexpr std::int64_t kBlock = 128;  // elements that are added up at once

// A number that one rank raises and all wait for.
struct alignas(kCacheLineBytes) Progress {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> num_asleep;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  // Either this sees who sleeps, or the kernel sees the new value and lets nobody fall asleep: all
  // accesses are in one order.
  void raise_to(std::uint64_t number) {
    value.store(static_cast<std::uint32_t>(number));
    if (num_asleep.load() > 0) {
      syscall(SYS_futex, &value, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
    }
  }

  // Looks for some microseconds, then sleeps: the processor may be needed by what is waited for.
  void wait_for(std::uint64_t number) {
    constexpr int kNumLooks = 500;
    for (int look = 0;; ++look) {
      const std::uint32_t seen = value.load();
      // The low half of the number, which wraps around; ranks are at most two pieces apart.
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

// What every rank of the group gave, by rank.
template <class T>
using Contributions = std::span<const T* const>;

// The sums of at most kBlock elements, to this rank's values and to the result that all read.
template <class T, class Sum>
[[gnu::always_inline]] inline void reduce_block(T* values, T* result, Contributions<T> of_ranks,
                                                ReduceOp op, Range block) {
  Sum sums[kBlock];
  const std::int64_t count = block.size();
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const T* from = of_ranks[r] + block.begin;
    if (r == 0) {
      for (std::int64_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(from[i]);
    } else if (op == ReduceOp::sum) {
      for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<Sum>(from[i]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        sums[i] = std::max(sums[i], static_cast<Sum>(from[i]));
      }
    }
  }
  for (std::int64_t i = 0; i < count; ++i) result[block.begin + i] = static_cast<T>(sums[i]);
  for (std::int64_t i = 0; i < count; ++i) values[block.begin + i] = static_cast<T>(sums[i]);
}

// Blocks have a length that the compiler knows, so that sums stay in registers.
template <class T, class Sum>
void reduce_share(T* values, T* result, Contributions<T> of_ranks, ReduceOp op, Range share) {
  std::int64_t begin = share.begin;
  for (; begin + kBlock <= share.end; begin += kBlock) {
    reduce_block<T, Sum>(values, result, of_ranks, op, {begin, begin + kBlock});
  }
  reduce_block<T, Sum>(values, result, of_ranks, op, {begin, share.end});
}

}  // namespace

struct SharedMemoryAllReduce::Header {
  std::array<Progress, kMaxRanks> written;        // pieces that the rank has given to the others
  std::array<Progress, kMaxRanks> reduced;        // pieces of which the rank has reduced its share
  std::array<std::int64_t, kMaxRanks> num_bytes;  // of the rank's present call
};

std::unique_ptr<SharedMemoryAllReduce> SharedMemoryAllReduce::make(const ProcessGroup& group) {
  if (group.size() > kMaxRanks) return nullptr;
  const auto num_buffers = kNumSlots * (static_cast<std::size_t>(group.size()) + 1);
  auto memory = SharedMemory::make(group, sizeof(Header) + num_buffers * kPieceBytes);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedMemoryAllReduce>(
      new SharedMemoryAllReduce(std::move(memory), group.rank(), group.size()));
}

SharedMemoryAllReduce::SharedMemoryAllReduce(std::unique_ptr<SharedMemory> memory, int rank,
                                             int size)
    : memory_(std::move(memory)), rank_(rank), size_(size) {}

// Zeros are a header of ranks that have done nothing.
SharedMemoryAllReduce::Header& SharedMemoryAllReduce::header() const {
  return *reinterpret_cast<Header*>(memory_->bytes().data());
}

std::byte* SharedMemoryAllReduce::contribution_of(int rank, std::uint64_t number) const {
  const std::size_t slot = number % kNumSlots * (static_cast<std::size_t>(size_) + 1);
  return memory_->bytes().data() + sizeof(Header) +
         (slot + static_cast<std::size_t>(rank)) * kPieceBytes;
}

std::byte* SharedMemoryAllReduce::result(std::uint64_t number) const {
  return contribution_of(size_, number);
}

// A slot is free again when it is needed: to give piece n + 3 a rank has taken piece n, which all
// had reduced by then; and it reduces piece n + 3 once all have given theirs, having taken piece n.
void SharedMemoryAllReduce::all_reduce(TensorView values, ReduceOp op) {
  if (values.count() == 0) return;
  header().num_bytes[static_cast<std::size_t>(rank_)] = static_cast<std::int64_t>(values.bytes());
  const auto most = static_cast<std::int64_t>(
      std::clamp(static_cast<std::size_t>(values.bytes()) / 4, kLeastPieceBytes, kPieceBytes) /
      size_of(values.dtype()));
  const TensorView flat = values.reshape({values.count()});
  const std::int64_t num_pieces = (values.count() + most - 1) / most;
  const auto piece = [&](std::int64_t p) {
    return Piece{.values = flat.slice(p * most, std::min(most, values.count() - p * most)),
                 .number = num_pieces_ + 1 + static_cast<std::uint64_t>(p)};
  };
  give(piece(0));
  for (std::int64_t p = 0; p < num_pieces; ++p) {
    if (p + 1 < num_pieces) give(piece(p + 1));
    reduce(piece(p), op);
    if (p > 0) take(piece(p - 1));
  }
  take(piece(num_pieces - 1));
  num_pieces_ += static_cast<std::uint64_t>(num_pieces);
}

void SharedMemoryAllReduce::copy_share(const Piece& piece, int rank, std::byte* to,
                                       const std::byte* from) const {
  const std::size_t element = size_of(piece.values.dtype());
  const Range share = partition(piece.values.count(), size_, rank);
  const std::size_t begin = static_cast<std::size_t>(share.begin) * element;
  std::memcpy(to + begin, from + begin, static_cast<std::size_t>(share.size()) * element);
}

void SharedMemoryAllReduce::give(const Piece& piece) {
  const auto* values = static_cast<const std::byte*>(piece.values.raw());
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) copy_share(piece, r, contribution_of(rank_, piece.number), values);
  }
  header().written[static_cast<std::size_t>(rank_)].raise_to(piece.number);
}

void SharedMemoryAllReduce::reduce(const Piece& piece, ReduceOp op) {
  const auto self = static_cast<std::size_t>(rank_);
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
    header().written[r].wait_for(piece.number);
    if (header().num_bytes[r] != header().num_bytes[self]) {
      throw Error(
          fmt::format("an all-reduce of {} bytes on rank {} of the group met one of {} on "
                      "rank {}",
                      header().num_bytes[self], rank_, header().num_bytes[r], r));
    }
  }
  const auto reduce_as = [&]<class T, class Sum>(T* values, Sum) {
    std::array<const T*, kMaxRanks> of_ranks{};
    for (int r = 0; r < size_; ++r) {
      of_ranks[static_cast<std::size_t>(r)] =
          r == rank_ ? values : reinterpret_cast<const T*>(contribution_of(r, piece.number));
    }
    reduce_share<T, Sum>(values, reinterpret_cast<T*>(result(piece.number)),
                         Contributions<T>(of_ranks.data(), static_cast<std::size_t>(size_)), op,
                         partition(piece.values.count(), size_, rank_));
  };
  switch (piece.values.dtype()) {
    case DType::f32:
      reduce_as(piece.values.data<float>(), 0.0F);
      break;
    case DType::f64:
      reduce_as(piece.values.data<double>(), 0.0);
      break;
    case DType::i32:
      reduce_as(piece.values.data<std::int32_t>(), std::int32_t{0});
      break;
    case DType::i64:
      reduce_as(piece.values.data<std::int64_t>(), std::int64_t{0});
      break;
    case DType::bf16:
      reduce_as(piece.values.data<BFloat16>(), 0.0F);
      break;
  }
  header().reduced[self].raise_to(piece.number);
}

void SharedMemoryAllReduce::take(const Piece& piece) const {
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    header().reduced[static_cast<std::size_t>(r)].wait_for(piece.number);
    copy_share(piece, r, static_cast<std::byte*>(piece.values.raw()), result(piece.number));
  }
}

}  // namespace redspine
