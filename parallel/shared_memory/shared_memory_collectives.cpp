#include "parallel/shared_memory/shared_memory_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "parallel/group/sum_in_order.h"
#include "parallel/shared_memory/progress.h"
#include "parallel/shared_memory/reduce_part.h"
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

std::int64_t elements_of_piece(ConstTensorView values) {
  return static_cast<std::int64_t>(std::clamp(values.bytes() / 4, kLeastPieceBytes, kPieceBytes) /
                                   size_of(values.dtype()));
}

// Where a rank's summands lie one after another in its buffer.
std::int64_t elements_of_piece(ConstTensorView sum, const SumOrder& order) {
  return std::max<std::int64_t>(elements_of_piece(sum) / std::max(order.most_summands(), 1), 1);
}

}  // namespace

struct SharedMemoryCollectives::Header {
  std::array<Progress, kMaxRanks> given;     // pieces of which the rank's buffer has its part
  std::array<Progress, kMaxRanks> consumed;  // pieces that the rank has read all it needs of, and
                                             // of a reduction has the sums of its part there
  std::array<std::array<Call, kMaxRanks>, kNumSlots> calls;  // [slot][rank]: to which they belong
};

std::unique_ptr<SharedMemoryCollectives> SharedMemoryCollectives::make(const ProcessGroup& group) {
  if (group.size() > kMaxRanks) return nullptr;
  const auto num_buffers = kNumSlots * (static_cast<std::size_t>(group.size()) + 1);
  auto memory = SharedMemory::make(group, sizeof(Header) + num_buffers * kPieceBytes);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedMemoryCollectives>(
      new SharedMemoryCollectives(std::move(memory), group.rank(), group.size()));
}

SharedMemoryCollectives::SharedMemoryCollectives(std::unique_ptr<SharedMemory> memory, int rank,
                                                 int size)
    : memory_(std::move(memory)), rank_(rank), size_(size) {}

// Zeros are a header of ranks that have done nothing.
SharedMemoryCollectives::Header& SharedMemoryCollectives::header() const {
  return *reinterpret_cast<Header*>(memory_->bytes().data());
}

std::byte* SharedMemoryCollectives::contribution_of(int rank, std::uint64_t number) const {
  const std::size_t slot = number % kNumSlots * (static_cast<std::size_t>(size_) + 1);
  return memory_->bytes().data() + sizeof(Header) +
         (slot + static_cast<std::size_t>(rank)) * kPieceBytes;
}

std::byte* SharedMemoryCollectives::result(std::uint64_t number) const {
  return contribution_of(size_, number);
}

template <class PartOfRank>
SharedMemoryCollectives::Piece SharedMemoryCollectives::cut(std::uint64_t number,
                                                            const PartOfRank& part_of_rank) const {
  Piece piece;
  piece.number = number;
  std::int64_t offset = 0;
  for (int r = 0; r < size_; ++r) {
    const auto index = static_cast<std::size_t>(r);
    piece.parts[index] = part_of_rank(r);
    piece.offsets[index] = offset;
    offset += piece.parts[index].size();
  }
  piece.num_elements = offset;
  return piece;
}

// Buffers are free again when they are needed. A contribution is overwritten, to give piece n + 3,
// once all ranks have consumed piece n. The sums of piece n are overwritten by reducing piece
// n + 3, once all have given theirs, which each does after it has taken piece n.
template <class Give, class Reduce>
void SharedMemoryCollectives::pass_sums(TensorView values, std::int64_t most, const Call& call,
                                        const Give& give_piece, const Reduce& reduce_piece) {
  const std::int64_t num_pieces = (values.count() + most - 1) / most;
  const auto piece = [&](std::int64_t p) {
    const Range all{p * most, std::min((p + 1) * most, values.count())};
    return cut(num_pieces_ + 1 + static_cast<std::uint64_t>(p),
               [&](int r) { return part_of(all, size_, r); });
  };
  const auto take_sums = [&](const Piece& of) {
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      header().consumed[static_cast<std::size_t>(r)].wait_for(of.number);
      take(of, r, values, result(of.number));
    }
  };
  give_piece(piece(0));
  for (std::int64_t p = 0; p < num_pieces; ++p) {
    if (p + 1 < num_pieces) give_piece(piece(p + 1));
    const Piece present = piece(p);
    await(present, call);
    reduce_piece(present);
    if (p > 0) take_sums(piece(p - 1));
  }
  take_sums(piece(num_pieces - 1));
  num_pieces_ += static_cast<std::uint64_t>(num_pieces);
}

void SharedMemoryCollectives::all_reduce(TensorView values, ReduceOp op) {
  const Call call{.kind = Call::Kind::all_reduce,
                  .dtype = values.dtype(),
                  .op = op,
                  .num_bytes = values.bytes()};
  pass_sums(
      values, elements_of_piece(values), call,
      [&](const Piece& piece) { give(piece, values, Given::of_others, call); },
      [&](const Piece& piece) { reduce(piece, values, op, result(piece.number)); });
}

void SharedMemoryCollectives::all_reduce_in_order(TensorView out,
                                                  std::span<const ConstTensorView> summands,
                                                  const SumOrder& order) {
  const Call call{.kind = Call::Kind::all_reduce_in_order,
                  .dtype = DType::f32,
                  .num_bytes = out.bytes(),
                  .shares = hash_of(order)};
  pass_sums(
      out, elements_of_piece(out, order), call,
      [&](const Piece& piece) { give_all(piece, summands, Given::of_others, call); },
      [&](const Piece& piece) {
        reduce_in_order(piece, out, summands, order, result(piece.number));
      });
}

void SharedMemoryCollectives::reduce_scatter(TensorView values, std::span<const Range> shares,
                                             ReduceOp op) {
  const Call call{.kind = Call::Kind::reduce_scatter,
                  .dtype = values.dtype(),
                  .op = op,
                  .num_bytes = values.bytes(),
                  .shares = hash_of(shares)};
  pass_shares(
      shares, elements_of_piece(values), call,
      [&](const Piece& piece) { give(piece, values, Given::of_others, call); },
      [&](const Piece& piece) { reduce(piece, values, op, nullptr); });
}

void SharedMemoryCollectives::reduce_scatter_in_order(TensorView out,
                                                      std::span<const ConstTensorView> summands,
                                                      std::span<const Range> shares,
                                                      const SumOrder& order) {
  const Call call{.kind = Call::Kind::reduce_scatter_in_order,
                  .dtype = DType::f32,
                  .num_bytes = out.bytes(),
                  .shares = hash_of(shares, hash_of(order))};
  pass_shares(
      shares, elements_of_piece(out, order), call,
      [&](const Piece& piece) { give_all(piece, summands, Given::of_others, call); },
      [&](const Piece& piece) { reduce_in_order(piece, out, summands, order, nullptr); });
}

void SharedMemoryCollectives::all_gather(TensorView values, std::span<const Range> shares) {
  gather(values, shares,
         {.kind = Call::Kind::all_gather,
          .dtype = values.dtype(),
          .num_bytes = values.bytes(),
          .shares = hash_of(shares)});
}

// What is gathered where the root's share is everything.
void SharedMemoryCollectives::broadcast(TensorView values, int root) {
  std::vector<Range> shares(static_cast<std::size_t>(size_), {0, 0});
  for (int r = root; r < size_; ++r) {
    shares[static_cast<std::size_t>(r)] = {r == root ? 0 : values.count(), values.count()};
  }
  gather(values, shares,
         {.kind = Call::Kind::broadcast,
          .dtype = values.dtype(),
          .root = root,
          .num_bytes = values.bytes()});
}

void SharedMemoryCollectives::gather(TensorView values, std::span<const Range> shares,
                                     const Call& call) {
  pass_shares(
      shares, elements_of_piece(values), call,
      [&](const Piece& piece) { give(piece, values, Given::own, call); },
      [&](const Piece& piece) {
        for (int r = 0; r < size_; ++r) {
          if (r != rank_) take(piece, r, values, contribution_of(r, piece.number));
        }
        consumed(piece);
      });
}

// The way of every piece of the shares: the ranks give theirs, and each works on what all gave.
template <class Give, class Work>
void SharedMemoryCollectives::pass_shares(std::span<const Range> shares, std::int64_t most,
                                          const Call& call, const Give& give_piece,
                                          const Work& work) {
  const int num_pieces = num_parts_of_shares(shares.back().end, shares.size(), most);
  const auto piece = [&](int p) {
    return cut(num_pieces_ + 1 + static_cast<std::uint64_t>(p),
               [&](int r) { return part_of(shares[static_cast<std::size_t>(r)], num_pieces, p); });
  };
  give_piece(piece(0));
  for (int p = 0; p < num_pieces; ++p) {
    if (p + 1 < num_pieces) give_piece(piece(p + 1));
    const Piece present = piece(p);
    await(present, call);
    work(present);
  }
  num_pieces_ += static_cast<std::uint64_t>(num_pieces);
}

void SharedMemoryCollectives::give(const Piece& piece, ConstTensorView values, Given given,
                                   const Call& call) const {
  give_all(piece, std::span(&values, 1), given, call);
}

void SharedMemoryCollectives::give_all(const Piece& piece,
                                       std::span<const ConstTensorView> of_piece, Given given,
                                       const Call& call) const {
  for (Progress& consumed : std::span(header().consumed).first(static_cast<std::size_t>(size_))) {
    consumed.wait_for(piece.number - kNumSlots);
  }
  std::byte* buffer = contribution_of(rank_, piece.number);
  for (const ConstTensorView& values : of_piece) {
    const auto* from = static_cast<const std::byte*>(values.raw());
    const std::size_t element = size_of(values.dtype());
    for (int r = 0; r < size_; ++r) {
      if ((given == Given::own) != (r == rank_)) continue;
      const auto index = static_cast<std::size_t>(r);
      const Range part = piece.parts[index];
      std::memcpy(buffer + static_cast<std::size_t>(piece.offsets[index]) * element,
                  from + static_cast<std::size_t>(part.begin) * element,
                  static_cast<std::size_t>(part.size()) * element);
    }
    buffer += static_cast<std::size_t>(piece.num_elements) * element;
  }
  const auto self = static_cast<std::size_t>(rank_);
  header().calls[piece.number % kNumSlots][self] = call;
  header().given[self].raise_to(piece.number);
}

void SharedMemoryCollectives::await(const Piece& piece, const Call& call) const {
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
    header().given[r].wait_for(piece.number);
    const Call& theirs = header().calls[piece.number % kNumSlots][r];
    if (theirs == call) continue;
    throw Error(fmt::format("{} on rank {} of the group met {} on rank {}{}", call.to_string(),
                            rank_, theirs.to_string(), r,
                            theirs.shares == call.shares ? "" : ", with other shares"));
  }
}

void SharedMemoryCollectives::reduce(const Piece& piece, TensorView values, ReduceOp op,
                                     std::byte* result) const {
  const auto self = static_cast<std::size_t>(rank_);
  const auto reduce_as = [&]<class T, class Sum>(T* all_values, Sum) {
    T* own = all_values + piece.parts[self].begin;
    const std::int64_t offset = piece.offsets[self];
    std::array<const T*, kMaxRanks> of_ranks;
    for (int r = 0; r < size_; ++r) {
      of_ranks[static_cast<std::size_t>(r)] =
          r == rank_ ? own : reinterpret_cast<const T*>(contribution_of(r, piece.number)) + offset;
    }
    reduce_part<T, Sum>(own, result == nullptr ? nullptr : reinterpret_cast<T*>(result) + offset,
                        Contributions<T>(of_ranks.data(), static_cast<std::size_t>(size_)), op,
                        piece.parts[self].size());
  };
  switch (values.dtype()) {
    case DType::f32:
      reduce_as(values.data<float>(), 0.0F);
      break;
    case DType::f64:
      reduce_as(values.data<double>(), 0.0);
      break;
    case DType::i32:
      reduce_as(values.data<std::int32_t>(), std::int32_t{0});
      break;
    case DType::i64:
      reduce_as(values.data<std::int64_t>(), std::int64_t{0});
      break;
    case DType::bf16:
      reduce_as(values.data<BFloat16>(), 0.0F);
      break;
  }
  consumed(piece);
}

void SharedMemoryCollectives::reduce_in_order(const Piece& piece, TensorView out,
                                              std::span<const ConstTensorView> summands,
                                              const SumOrder& order, std::byte* result) const {
  const auto self = static_cast<std::size_t>(rank_);
  const Range own = piece.parts[self];
  const std::int64_t offset = piece.offsets[self];
  std::vector<const float*> all;
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
    const auto* theirs =
        reinterpret_cast<const float*>(contribution_of(static_cast<int>(r), piece.number));
    for (int s = 0; s < order.num_summands[r]; ++s) {
      all.push_back(r == self ? summands[static_cast<std::size_t>(s)].data<float>() + own.begin
                              : theirs + s * piece.num_elements + offset);
    }
  }
  sum_in_order(out.data<float>() + own.begin,
               result == nullptr ? nullptr : reinterpret_cast<float*>(result) + offset, all, order,
               own.size());
  consumed(piece);
}

void SharedMemoryCollectives::consumed(const Piece& piece) const {
  header().consumed[static_cast<std::size_t>(rank_)].raise_to(piece.number);
}

void SharedMemoryCollectives::take(const Piece& piece, int rank, TensorView values,
                                   const std::byte* buffer) const {
  const auto index = static_cast<std::size_t>(rank);
  const std::size_t element = size_of(values.dtype());
  const Range part = piece.parts[index];
  auto* to = static_cast<std::byte*>(values.raw());
  std::memcpy(to + static_cast<std::size_t>(part.begin) * element,
              buffer + static_cast<std::size_t>(piece.offsets[index]) * element,
              static_cast<std::size_t>(part.size()) * element);
}

}  // namespace redspine
