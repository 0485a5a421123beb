#include "parallel/shared_memory_all_reduce.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "parallel/mpi_handle.h"
#include "parallel/partition.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// A piece of each rank and the result stay in the level-2 caches.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kCacheLineBytes = 64;
constexpr int kMaxRanks = 64;

// A number that one rank raises and all wait for.
struct alignas(kCacheLineBytes) Progress {
  std::atomic<std::uint32_t> value;
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  void raise_to(std::uint32_t number) {
    value.store(number, std::memory_order_release);
    syscall(SYS_futex, &value, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
  }

  // Looks for some microseconds, then sleeps: the processor may be needed by what is waited for.
  void wait_for(std::uint32_t number) const {
    constexpr int kNumLooks = 500;
    for (int look = 0;; ++look) {
      const std::uint32_t seen = value.load(std::memory_order_acquire);
      // Numbers wrap around; ranks are never more than one piece apart.
      if (static_cast<std::int32_t>(seen - number) >= 0) return;
      if (look < kNumLooks) {
        _mm_pause();
      } else {
        syscall(SYS_futex, &value, FUTEX_WAIT, seen, nullptr, nullptr, 0);
      }
    }
  }
};

// What every rank of the group gave, by rank.
template <class T>
using Contributions = std::span<const T* const>;

// The elements of `share`, to this rank's values and to the result that all read.
template <class T, class Sum>
void reduce_share(T* values, T* result, Contributions<T> of_ranks, ReduceOp op, Range share) {
  constexpr std::int64_t kBlock = 512;
  for (std::int64_t begin = share.begin; begin < share.end; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, share.end - begin);
    Sum sums[kBlock];
    for (std::size_t r = 0; r < of_ranks.size(); ++r) {
      const T* from = of_ranks[r] + begin;
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
    for (std::int64_t i = 0; i < count; ++i) {
      values[begin + i] = result[begin + i] = static_cast<T>(sums[i]);
    }
  }
}

// Whether every rank says yes.
bool all_agree(MPI_Comm communicator, bool mine) {
  int result = mine ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MIN, communicator),
            "MPI_Allreduce");
  return result == 1;
}

bool is_on_one_host(MPI_Comm communicator, int size) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  int host_size = 0;
  check_mpi(MPI_Comm_size(host, &host_size), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
  return all_agree(communicator, host_size == size);
}

}  // namespace

struct SharedMemoryAllReduce::Header {
  std::array<Progress, kMaxRanks> written;        // pieces that the rank has given to the others
  std::array<Progress, kMaxRanks> reduced;        // pieces of which the rank has reduced its share
  std::array<std::int64_t, kMaxRanks> num_bytes;  // of the rank's present piece
};

std::unique_ptr<SharedMemoryAllReduce> SharedMemoryAllReduce::make(MPI_Comm communicator) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  if (size > kMaxRanks || !is_on_one_host(communicator, size)) return nullptr;

  const std::size_t bytes = sizeof(Header) + (static_cast<std::size_t>(size) + 1) * kPieceBytes;
  // One name a group and call: the address tells the groups of a process apart.
  char name[64] = {};
  const int descriptor_of_first = [&] {
    if (rank != 0) return -1;
    const auto length = fmt::format_to_n(name, sizeof(name) - 1, "/redspine-{}-{}", getpid(),
                                         reinterpret_cast<std::uintptr_t>(communicator));
    *length.out = '\0';
    const int made = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    // Reserved now: a full file system would kill the process when a page is touched.
    if (made >= 0 && posix_fallocate(made, 0, static_cast<off_t>(bytes)) != 0) {
      shm_unlink(name);
      close(made);
      return -1;
    }
    return made;
  }();
  check_mpi(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, communicator), "MPI_Bcast");
  const int descriptor =
      rank == 0 ? descriptor_of_first : shm_open(name, O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  void* mapping = MAP_FAILED;
  if (descriptor >= 0) {
    mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
  }
  const bool is_made = all_agree(communicator, mapping != MAP_FAILED);
  if (rank == 0 && descriptor_of_first >= 0) shm_unlink(name);  // all have it who will
  if (!is_made) {
    if (mapping != MAP_FAILED) munmap(mapping, bytes);
    return nullptr;
  }
  return std::unique_ptr<SharedMemoryAllReduce>(new SharedMemoryAllReduce(mapping, rank, size));
}

SharedMemoryAllReduce::SharedMemoryAllReduce(void* mapping, int rank, int size)
    : mapping_(mapping), rank_(rank), size_(size) {}

SharedMemoryAllReduce::~SharedMemoryAllReduce() {
  munmap(mapping_, sizeof(Header) + (static_cast<std::size_t>(size_) + 1) * kPieceBytes);
}

std::byte* SharedMemoryAllReduce::contribution_of(int rank) const {
  return static_cast<std::byte*>(mapping_) + sizeof(Header) +
         static_cast<std::size_t>(rank) * kPieceBytes;
}

std::byte* SharedMemoryAllReduce::result() const { return contribution_of(size_); }

void SharedMemoryAllReduce::all_reduce(TensorView values, ReduceOp op) {
  const auto most = static_cast<std::int64_t>(kPieceBytes / size_of(values.dtype()));
  const TensorView flat = values.reshape({values.count()});
  for (const Range& range : pieces(values.count(), most)) {
    reduce_piece(flat.slice(range.begin, range.size()), op);
  }
}

// A rank gives what others reduce, waits for theirs, reduces its share, waits for the other shares.
// One buffer each is enough: who has seen all shares reduced knows that nobody reads contributions
// any more, and who has seen the next contributions knows that nobody reads the last result.
void SharedMemoryAllReduce::reduce_piece(TensorView piece, ReduceOp op) {
  auto& header = *static_cast<Header*>(mapping_);
  const std::uint32_t number = ++num_pieces_;
  const auto self = static_cast<std::size_t>(rank_);
  const std::size_t element = size_of(piece.dtype());
  auto* values = static_cast<std::byte*>(piece.raw());
  const auto copy_share = [&](std::byte* to, const std::byte* from, int rank) {
    const Range share = partition(piece.count(), size_, rank);
    const std::size_t begin = static_cast<std::size_t>(share.begin) * element;
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(share.size()) * element);
  };

  header.num_bytes[self] = static_cast<std::int64_t>(piece.bytes());
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) copy_share(contribution_of(rank_), values, r);
  }
  header.written[self].raise_to(number);
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
    header.written[r].wait_for(number);
    if (header.num_bytes[r] != header.num_bytes[self]) {
      throw Error(
          fmt::format("an all-reduce of {} bytes on rank {} of the group met one of {} on "
                      "rank {}",
                      header.num_bytes[self], rank_, header.num_bytes[r], r));
    }
  }

  const auto reduce = [&]<class T, class Sum>(T* typed, Sum) {
    std::array<const T*, kMaxRanks> of_ranks{};
    for (int r = 0; r < size_; ++r) {
      of_ranks[static_cast<std::size_t>(r)] =
          r == rank_ ? typed : reinterpret_cast<const T*>(contribution_of(r));
    }
    reduce_share<T, Sum>(typed, reinterpret_cast<T*>(result()),
                         Contributions<T>(of_ranks.data(), static_cast<std::size_t>(size_)), op,
                         partition(piece.count(), size_, rank_));
  };
  switch (piece.dtype()) {
    case DType::f32:
      reduce(piece.data<float>(), 0.0F);
      break;
    case DType::f64:
      reduce(piece.data<double>(), 0.0);
      break;
    case DType::i32:
      reduce(piece.data<std::int32_t>(), std::int32_t{0});
      break;
    case DType::i64:
      reduce(piece.data<std::int64_t>(), std::int64_t{0});
      break;
    case DType::bf16:
      reduce(piece.data<BFloat16>(), 0.0F);
      break;
  }
  header.reduced[self].raise_to(number);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    header.reduced[static_cast<std::size_t>(r)].wait_for(number);
    copy_share(values, result(), r);
  }
}

}  // namespace redspine
