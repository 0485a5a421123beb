#include "parallel/mpi/mpi_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "parallel/group/mpi_handle.h"
#include "parallel/group/sum_in_order.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// MPI counts are `int`. Longer vectors go in pieces of this many elements, or bytes.
constexpr std::int64_t kMaxElementsPerCall = std::int64_t{1} << 28;
constexpr std::int64_t kMaxBytesPerCall = std::int64_t{1} << 30;
// What a sum in a given order takes at once, and with it memory for what the other ranks give.
constexpr std::int64_t kOrderedElements = std::int64_t{1} << 20;

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::bf16:
      break;  // nothing that MPI can add
  }
  throw Error("a dtype that MPI does not know");
}

MPI_Op mpi_op(ReduceOp op) { return op == ReduceOp::sum ? MPI_SUM : MPI_MAX; }

std::vector<Range> pieces_of_bytes(std::int64_t count, DType dtype) {
  return pieces(count, kMaxBytesPerCall / static_cast<std::int64_t>(size_of(dtype)));
}

std::span<const std::byte> bytes_of(ConstTensorView values) {
  return {static_cast<const std::byte*>(values.raw()), values.bytes()};
}
std::span<std::byte> bytes_of(TensorView values) {
  return {static_cast<std::byte*>(values.raw()), values.bytes()};
}

// Calls `work(f32 values)` on a copy of bf16 values, and rounds the result of `kept` of them.
template <class Work>
void in_f32(TensorView values, Range kept, const Work& work) {
  auto* narrow = values.data<BFloat16>();
  std::vector<float> wide(static_cast<std::size_t>(values.count()));
  std::transform(narrow, narrow + values.count(), wide.begin(),
                 [](BFloat16 value) { return static_cast<float>(value); });
  work(TensorView(wide.data(), DType::f32, values.shape()));
  std::transform(wide.begin() + kept.begin, wide.begin() + kept.end, narrow + kept.begin,
                 [](float value) { return BFloat16(value); });
}

void wait_for_all(std::vector<MPI_Request>& requests) {
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

// Calls `start(piece, owner, request)` for every share in pieces, and waits for all requests.
template <class Start>
void for_each_share(TensorView values, std::span<const Range> shares, const Start& start) {
  std::vector<MPI_Request> requests;
  for (std::size_t owner = 0; owner < shares.size(); ++owner) {
    const Range& share = shares[owner];
    for (const Range& range : pieces_of_bytes(share.size(), values.dtype())) {
      start(values.slice(share.begin + range.begin, range.size()), static_cast<int>(owner),
            requests.emplace_back());
    }
  }
  wait_for_all(requests);
}

// What comes before a message.
struct Header {
  std::uint64_t num_bytes;
  DType dtype;
};

}  // namespace

void MpiCollectives::all_reduce(TensorView values, ReduceOp op) {
  for (const Range& range : pieces(values.count(), kMaxElementsPerCall)) {
    const TensorView piece = values.slice(range.begin, range.size());
    if (piece.dtype() == DType::bf16) {
      in_f32(piece, {0, piece.count()}, [&](TensorView wide) { all_reduce(wide, op); });
      continue;
    }
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, piece.raw(), static_cast<int>(piece.count()),
                            mpi_type(piece.dtype()), mpi_op(op), group_.handle().communicator),
              "MPI_Allreduce");
  }
}

void MpiCollectives::all_reduce_in_order(TensorView out, std::span<const ConstTensorView> summands,
                                         const SumOrder& order) {
  const std::vector<Range> shares = partition(out.count(), group_.size());
  reduce_scatter_in_order(out, summands, shares, order);
  all_gather(out, shares);
}

// A part of every share at once.
void MpiCollectives::reduce_scatter_in_order(TensorView out,
                                             std::span<const ConstTensorView> summands,
                                             std::span<const Range> shares, const SumOrder& order) {
  const MPI_Comm communicator = group_.handle().communicator;
  const auto num_ranks = static_cast<std::size_t>(group_.size());
  const auto self = static_cast<std::size_t>(group_.rank());
  const int num_parts = num_parts_of_shares(out.count(), num_ranks, kOrderedElements);
  std::vector<float> received;
  for (int p = 0; p < num_parts; ++p) {
    const Range own = part_of(shares[self], num_parts, p);
    received.resize(order.num_merges.size() * static_cast<std::size_t>(own.size()));
    std::vector<const float*> all;
    all.reserve(order.num_merges.size());
    std::vector<MPI_Request> requests;
    for (std::size_t r = 0; r < num_ranks; ++r) {
      for (int s = 0; s < order.num_summands[r]; ++s) {
        if (r == self) {
          all.push_back(summands[static_cast<std::size_t>(s)].data<float>() + own.begin);
          continue;
        }
        float* to = received.data() + all.size() * static_cast<std::size_t>(own.size());
        all.push_back(to);
        check_mpi(MPI_Irecv(to, static_cast<int>(own.size()), MPI_FLOAT, static_cast<int>(r), 0,
                            communicator, &requests.emplace_back()),
                  "MPI_Irecv");
      }
    }
    for (std::size_t r = 0; r < num_ranks; ++r) {
      if (r == self) continue;
      const Range part = part_of(shares[r], num_parts, p);
      for (const ConstTensorView& summand : summands) {
        check_mpi(
            MPI_Isend(summand.data<float>() + part.begin, static_cast<int>(part.size()), MPI_FLOAT,
                      static_cast<int>(r), 0, communicator, &requests.emplace_back()),
            "MPI_Isend");
      }
    }
    wait_for_all(requests);
    sum_in_order(out.data<float>() + own.begin, nullptr, all, order, own.size());
  }
}

// Shares of any sizes: one reduction each to its owner, all at once.
void MpiCollectives::reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op) {
  if (values.dtype() == DType::bf16) {
    in_f32(values, shares[static_cast<std::size_t>(group_.rank())],
           [&](TensorView wide) { reduce_scatter(wide, shares, op); });
    return;
  }
  for_each_share(values, shares, [&](TensorView piece, int owner, MPI_Request& request) {
    const bool is_mine = owner == group_.rank();
    check_mpi(MPI_Ireduce(is_mine ? MPI_IN_PLACE : piece.raw(), is_mine ? piece.raw() : nullptr,
                          static_cast<int>(piece.count()), mpi_type(piece.dtype()), mpi_op(op),
                          owner, group_.handle().communicator, &request),
              "MPI_Ireduce");
  });
}

void MpiCollectives::all_gather(TensorView values, std::span<const Range> shares) {
  for_each_share(values, shares, [&](TensorView piece, int owner, MPI_Request& request) {
    check_mpi(MPI_Ibcast(piece.raw(), static_cast<int>(piece.bytes()), MPI_BYTE, owner,
                         group_.handle().communicator, &request),
              "MPI_Ibcast");
  });
}

void MpiCollectives::broadcast(TensorView values, int root) {
  for (const Range& range : pieces_of_bytes(values.count(), values.dtype())) {
    const TensorView piece = values.slice(range.begin, range.size());
    check_mpi(MPI_Bcast(piece.raw(), static_cast<int>(piece.bytes()), MPI_BYTE, root,
                        group_.handle().communicator),
              "MPI_Bcast");
  }
}

void MpiCollectives::send_header(ConstTensorView values, int to) {
  const Header header{.num_bytes = values.bytes(), .dtype = values.dtype()};
  group_.send(std::as_bytes(std::span(&header, 1)), to);
}

void MpiCollectives::recv_header(ConstTensorView values, int from) {
  Header header{};
  group_.receive(std::as_writable_bytes(std::span(&header, 1)), from);
  if (header.num_bytes == values.bytes() && header.dtype == values.dtype()) return;
  throw Error(
      fmt::format("a recv of {} bytes of {} on rank {} of the group met a send of {} bytes of {} "
                  "on rank {}",
                  values.bytes(), name_of(values.dtype()), group_.rank(), header.num_bytes,
                  name_of(header.dtype), from));
}

void MpiCollectives::send(ConstTensorView piece, int to) { group_.send(bytes_of(piece), to); }

void MpiCollectives::recv(TensorView piece, int from) { group_.receive(bytes_of(piece), from); }

}  // namespace redspine
