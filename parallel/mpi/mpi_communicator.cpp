#include "parallel/mpi/mpi_communicator.h"

#include <array>
#include <optional>
#include <vector>

#include "parallel/group/host_collectives.h"
#include "parallel/mpi/mpi_collectives.h"
#include "parallel/partition.h"
#include "parallel/shared_memory/shared_memory_collectives.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

// What passes through host memory at once: long enough for full speed, short enough to pin.
constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

// Part of a vector, and where it is staged.
struct StagedPart {
  Range in_values;
  Range in_staging;
};

// One stream's way through the host's memory. MPI matches the calls on a communicator by their
// order, and two streams run in two threads, so each has a communicator of its own. Everything but
// construction runs in the stream's thread.
class StreamGroup {
 public:
  StreamGroup(const ProcessGroup& group, Device& device)
      : device_(device), is_staged_(!device.has_host_memory()), group_(group.split(0)) {}
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;

  void all_reduce(TensorView values, ReduceOp op) {
    for_each_piece(values, [&](TensorView piece) {
      const TensorView host = staged(piece);
      read(host, piece);
      collectives().all_reduce(host, op);
      write(piece, host);
    });
  }

  void all_reduce_in_order(TensorView out, std::span<const ConstTensorView> summands,
                           const SumOrder& order) {
    check_has_order();
    collectives().all_reduce_in_order(out, summands, order);
  }

  void reduce_scatter_in_order(TensorView out, std::span<const ConstTensorView> summands,
                               std::span<const Range> shares, const SumOrder& order) {
    check_has_order();
    collectives().reduce_scatter_in_order(out, summands, shares, order);
  }

  void reduce_scatter(TensorView values, std::span<const Range> shares, ReduceOp op) {
    if (!is_staged_) return collectives().reduce_scatter(values, shares, op);
    for_each_part(values, shares, [&](TensorView host, std::span<const StagedPart> parts) {
      for (const StagedPart& part : parts) read(of_staging(host, part), of_values(values, part));
      collectives().reduce_scatter(host, ranges_in_staging(parts), op);
      const StagedPart& own = parts[static_cast<std::size_t>(group_.rank())];
      write(of_values(values, own), of_staging(host, own));
    });
  }

  void all_gather(TensorView values, std::span<const Range> shares) {
    if (!is_staged_) return collectives().all_gather(values, shares);
    for_each_part(values, shares, [&](TensorView host, std::span<const StagedPart> parts) {
      const auto self = static_cast<std::size_t>(group_.rank());
      read(of_staging(host, parts[self]), of_values(values, parts[self]));
      collectives().all_gather(host, ranges_in_staging(parts));
      for (std::size_t r = 0; r < parts.size(); ++r) {
        if (r != self) write(of_values(values, parts[r]), of_staging(host, parts[r]));
      }
    });
  }

  void broadcast(TensorView values, int root) {
    for_each_piece(values, [&](TensorView piece) {
      const TensorView host = staged(piece);
      if (group_.rank() == root) read(host, piece);
      collectives().broadcast(host, root);
      if (group_.rank() != root) write(piece, host);
    });
  }

  void send(ConstTensorView values, int to) {
    mpi_.send_header(values, to);
    for_each_piece(values, [&](ConstTensorView piece) {
      if (!is_staged_) return mpi_.send(piece, to);
      const TensorView host = staged(piece);
      read(host, piece);
      mpi_.send(host, to);
    });
  }

  void recv(TensorView values, int from) {
    mpi_.recv_header(values, from);
    for_each_piece(values, [&](TensorView piece) {
      const TensorView host = staged(piece);
      mpi_.recv(host, from);
      write(piece, host);
    });
  }

 private:
  void check_has_order() const {
    if (is_staged_) throw Error("a sum in a given order is between CPUs alone");
  }

  // Made by the first call, since few streams have one.
  HostCollectives& collectives() {
    if (!shared_memory_) shared_memory_ = SharedMemoryCollectives::make(group_);
    if (*shared_memory_ != nullptr) return **shared_memory_;
    return mpi_;
  }

  std::int64_t elements_of_staging(DType dtype) const {
    return kStagingBytes / static_cast<std::int64_t>(size_of(dtype));
  }

  // A piece in host memory: itself, or as much of the staging memory.
  TensorView staged(ConstTensorView piece) {
    if (!staging_) staging_.emplace(device_, DType::bf16, Shape{kStagingBytes / 2});
    return {staging_->view().raw(), piece.dtype(), piece.shape()};
  }
  TensorView staged(TensorView piece) {
    return is_staged_ ? staged(ConstTensorView(piece)) : piece;
  }
  // Between the device and what is staged. Nothing where there is nothing to do.
  void read(TensorView to_host, ConstTensorView from) {
    if (is_staged_ && from.count() > 0) device_.read(to_host, from);
  }
  void write(TensorView to, ConstTensorView from_host) {
    if (is_staged_ && to.count() > 0) device_.write(to, from_host);
  }

  // Vectors that are not staged are one piece.
  template <class View, class Work>
  void for_each_piece(View values, const Work& work) {
    const View flat = values.reshape({values.count()});
    const std::int64_t most = is_staged_ ? elements_of_staging(values.dtype()) : values.count();
    if (most == 0) return;
    for (const Range& range : pieces(values.count(), most)) {
      work(flat.slice(range.begin, range.size()));
    }
  }

  // Calls `work(staging memory, [rank] parts)`, whose parts are of every rank's share and fill it.
  template <class Work>
  void for_each_part(TensorView values, std::span<const Range> shares, const Work& work) {
    const int num_parts =
        num_parts_of_shares(values.count(), shares.size(), elements_of_staging(values.dtype()));
    for (int p = 0; p < num_parts; ++p) {
      std::vector<StagedPart> parts;
      std::int64_t end = 0;
      for (const Range& share : shares) {
        const Range part = part_of(share, num_parts, p);
        parts.push_back({.in_values = part, .in_staging = {end, end + part.size()}});
        end += part.size();
      }
      work(staged(ConstTensorView(values.slice(0, end))), parts);
    }
  }
  static TensorView of_values(TensorView values, const StagedPart& part) {
    return values.slice(part.in_values.begin, part.in_values.size());
  }
  static TensorView of_staging(TensorView host, const StagedPart& part) {
    return host.slice(part.in_staging.begin, part.in_staging.size());
  }
  static std::vector<Range> ranges_in_staging(std::span<const StagedPart> parts) {
    std::vector<Range> ranges;
    ranges.reserve(parts.size());
    for (const StagedPart& part : parts) ranges.push_back(part.in_staging);
    return ranges;
  }

  Device& device_;
  bool is_staged_;
  ProcessGroup group_;
  MpiCollectives mpi_{group_};
  // Null between hosts.
  std::optional<std::unique_ptr<SharedMemoryCollectives>> shared_memory_;
  std::optional<HostTensor> staging_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const ProcessGroup& group, Device& device)
      : device_(device), rank_(group.rank()), size_(group.size()) {
    for (auto& stream_group : stream_groups_)
      stream_group = std::make_unique<StreamGroup>(group, device);
  }

  ~MpiCommunicator() override { finish_streams(device_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(TensorView values, ReduceOp op, Stream stream) override {
    enqueue(stream, [=](StreamGroup& group) { group.all_reduce(values, op); });
  }

  void begin_step(std::int64_t) override {}

 private:
  void enqueue_all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                   const SumOrder& order, Stream stream) override {
    enqueue(stream, [=, summands = std::move(summands)](StreamGroup& group) {
      group.all_reduce_in_order(out, summands, order);
    });
  }
  void enqueue_reduce_scatter_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                       std::vector<Range> shares, const SumOrder& order,
                                       Stream stream) override {
    enqueue(stream,
            [=, summands = std::move(summands), shares = std::move(shares)](StreamGroup& group) {
              group.reduce_scatter_in_order(out, summands, shares, order);
            });
  }
  void enqueue_reduce_scatter(TensorView values, std::vector<Range> shares, ReduceOp op,
                              Stream stream) override {
    enqueue(stream, [=, shares = std::move(shares)](StreamGroup& group) {
      group.reduce_scatter(values, shares, op);
    });
  }
  void enqueue_all_gather(TensorView values, std::vector<Range> shares, Stream stream) override {
    enqueue(stream, [=, shares = std::move(shares)](StreamGroup& group) {
      group.all_gather(values, shares);
    });
  }
  void enqueue_broadcast(TensorView values, int root, Stream stream) override {
    enqueue(stream, [=](StreamGroup& group) { group.broadcast(values, root); });
  }
  void enqueue_send(ConstTensorView values, int to, Stream stream) override {
    enqueue(stream, [=](StreamGroup& group) { group.send(values, to); });
  }
  void enqueue_recv(TensorView values, int from, Stream stream) override {
    enqueue(stream, [=](StreamGroup& group) { group.recv(values, from); });
  }

  template <class Call>
  void enqueue(Stream stream, Call call) {
    StreamGroup* group = stream_groups_[static_cast<std::size_t>(stream)].get();
    device_.enqueue(stream, [group, call = std::move(call)] { call(*group); });
  }

  Device& device_;
  int rank_;
  int size_;
  std::array<std::unique_ptr<StreamGroup>, kNumStreams> stream_groups_;  // [stream]
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const ProcessGroup& group, Device& device) {
  return std::make_unique<MpiCommunicator>(group, device);
}

}  // namespace redspine
