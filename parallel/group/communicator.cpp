#include "parallel/group/communicator.h"

#include <fmt/format.h>

#include <exception>

#include "tensor/error.h"

namespace redspine {
namespace {

// Shares of the outermost dim as ranges of elements.
std::vector<Range> shares_of_elements(ConstTensorView values, std::span<const Range> shares,
                                      int num_ranks) {
  if (shares.size() != static_cast<std::size_t>(num_ranks)) {
    throw Error(fmt::format("{} shares of a tensor for {} ranks", shares.size(), num_ranks));
  }
  const std::int64_t num_rows = values.dim(0);
  const std::int64_t row_size = num_rows == 0 ? 0 : values.count() / num_rows;
  std::vector<Range> elements;
  elements.reserve(shares.size());
  std::int64_t begin = 0;
  for (const Range& share : shares) {
    if (share.begin != begin || share.end < begin) {
      throw Error(fmt::format("rank {} has the share [{}, {}) of a tensor, which cannot follow {}",
                              elements.size(), share.begin, share.end, begin));
    }
    begin = share.end;
    elements.push_back({share.begin * row_size, share.end * row_size});
  }
  if (begin != num_rows) {
    throw Error(fmt::format("shares of {} in all of a tensor with {}", begin, num_rows));
  }
  return elements;
}

TensorView flat(TensorView values) { return values.reshape({values.count()}); }

void check_rank(int rank, int num_ranks) {
  if (rank < 0 || rank >= num_ranks) {
    throw Error(fmt::format("there is no rank {} in a group of {}", rank, num_ranks));
  }
}

void check_peer(int peer, const Communicator& communicator) {
  check_rank(peer, communicator.size());
  if (peer == communicator.rank()) {
    throw Error(fmt::format("a message from rank {} of a group to itself", peer));
  }
}

void flatten_summands(std::vector<ConstTensorView>& summands, TensorView out, const SumOrder& order,
                      const Communicator& communicator) {
  if (order.num_summands.size() != static_cast<std::size_t>(communicator.size())) {
    throw Error(fmt::format("an order of the sum over {} ranks for {}", order.num_summands.size(),
                            communicator.size()));
  }
  const int num_own = order.num_summands[static_cast<std::size_t>(communicator.rank())];
  if (summands.size() != static_cast<std::size_t>(num_own)) {
    throw Error(fmt::format("{} summands of rank {}, which has {} in this order", summands.size(),
                            communicator.rank(), num_own));
  }
  for (ConstTensorView& summand : summands) {
    check_copy(out, summand);
    summand = summand.reshape({out.count()});
  }
}

}  // namespace

void Communicator::all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                       const SumOrder& order, Stream stream) {
  flatten_summands(summands, out, order, *this);
  if (out.count() == 0) return;
  enqueue_all_reduce_in_order(flat(out), std::move(summands), order, stream);
}

void Communicator::reduce_scatter_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                           std::span<const Range> shares, const SumOrder& order,
                                           Stream stream) {
  std::vector<Range> elements = shares_of_elements(out, shares, size());
  flatten_summands(summands, out, order, *this);
  if (out.count() == 0) return;
  enqueue_reduce_scatter_in_order(flat(out), std::move(summands), std::move(elements), order,
                                  stream);
}

void Communicator::reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op,
                                  Stream stream) {
  std::vector<Range> elements = shares_of_elements(values, shares, size());
  if (values.count() == 0) return;
  enqueue_reduce_scatter(flat(values), std::move(elements), op, stream);
}

void Communicator::reduce_scatter(TensorView values, ReduceOp op, Stream stream) {
  reduce_scatter(values, partition(values.dim(0), size()), op, stream);
}

void Communicator::all_gather(TensorView values, std::span<const Range> shares, Stream stream) {
  std::vector<Range> elements = shares_of_elements(values, shares, size());
  if (values.count() == 0) return;
  enqueue_all_gather(flat(values), std::move(elements), stream);
}

void Communicator::all_gather(TensorView values, Stream stream) {
  all_gather(values, partition(values.dim(0), size()), stream);
}

void Communicator::broadcast(TensorView values, int root, Stream stream) {
  check_rank(root, size());
  if (values.count() == 0) return;
  enqueue_broadcast(flat(values), root, stream);
}

void Communicator::send(ConstTensorView values, int to, Stream stream) {
  check_peer(to, *this);
  if (values.count() == 0) return;
  enqueue_send(values.reshape({values.count()}), to, stream);
}

void Communicator::recv(TensorView values, int from, Stream stream) {
  check_peer(from, *this);
  if (values.count() == 0) return;
  enqueue_recv(flat(values), from, stream);
}

void finish_streams(Device& device) noexcept {
  for (int stream = 0; stream < kNumStreams; ++stream) {
    try {
      device.synchronize(static_cast<Stream>(stream));
    } catch (const std::exception&) {
      continue;  // the job is already ending
    }
  }
}

}  // namespace redspine
