#include <utility>

#include "tensor/error.h"
#include "trainer/plan/recording_device.h"

namespace redspine {
namespace {

// FNV-1a. Thousands of ranks have as many shares in each call.
std::uint64_t hash_of(std::span<const Range> shares) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const Range& share : shares) {
    hash = (hash ^ static_cast<std::uint64_t>(share.end)) * 0x100'0000'01B3;
  }
  return hash;
}

class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(Axis axis, const ProcessGroup& group, RecordingDevice& device)
      : axis_(axis), rank_(group.rank()), size_(group.size()), device_(device) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void begin_step(std::int64_t /*step*/) override {}

  void all_reduce(TensorView values, ReduceOp op, Stream stream) override {
    record({.axis = axis_,
            .kind = CollectiveKind::all_reduce,
            .op = op,
            .dtype = values.dtype(),
            .count = values.count(),
            .shares_hash = 0,
            .stream = stream});
  }

 private:
  void enqueue_reduce_scatter(TensorView values, std::vector<Range> shares, ReduceOp op,
                              Stream stream) override {
    record({.axis = axis_,
            .kind = CollectiveKind::reduce_scatter,
            .op = op,
            .dtype = values.dtype(),
            .count = values.count(),
            .shares_hash = hash_of(shares),
            .stream = stream});
  }
  void enqueue_all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                   const SumOrder& /*order*/, Stream stream) override {
    record_in_order(CollectiveKind::all_reduce, out, summands, 0, stream);
  }
  void enqueue_reduce_scatter_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                       std::vector<Range> shares, const SumOrder& /*order*/,
                                       Stream stream) override {
    record_in_order(CollectiveKind::reduce_scatter, out, summands, hash_of(shares), stream);
  }
  void enqueue_all_gather(TensorView values, std::vector<Range> shares, Stream stream) override {
    record({.axis = axis_,
            .kind = CollectiveKind::all_gather,
            .op = ReduceOp::sum,
            .dtype = values.dtype(),
            .count = values.count(),
            .shares_hash = hash_of(shares),
            .stream = stream});
  }
  void enqueue_broadcast(TensorView values, int root, Stream stream) override {
    record({.axis = axis_,
            .kind = CollectiveKind::broadcast,
            .op = ReduceOp::sum,
            .dtype = values.dtype(),
            .count = values.count(),
            .shares_hash = 0,
            .root = root,
            .stream = stream});
  }
  void enqueue_send(ConstTensorView, int, Stream) override { reject_message(); }
  void enqueue_recv(TensorView, int, Stream) override { reject_message(); }

  [[noreturn]] static void reject_message() {
    throw Error("a step with messages between two ranks cannot be recorded");
  }

  void record_in_order(CollectiveKind kind, TensorView out,
                       std::span<const ConstTensorView> summands, std::uint64_t shares_hash,
                       Stream stream) {
    // A sum that lies apart as its only summand is copied, as by a group of one.
    if (size_ == 1 && out.raw() != summands.front().raw()) device_.copy(out, summands.front());
    record({.axis = axis_,
            .kind = kind,
            .op = ReduceOp::sum,
            .dtype = out.dtype(),
            .count = out.count(),
            .shares_hash = shares_hash,
            .in_order = true,
            .stream = stream});
  }

  void record(const CollectiveCall& call) {
    if (size_ > 1 && call.count > 0) device_.record(call);
  }

  Axis axis_;
  int rank_;
  int size_;
  RecordingDevice& device_;
};

}  // namespace

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::broadcast:
      return "broadcast";
  }
  return "unknown";
}

std::unique_ptr<Communicator> make_recording_communicator(Axis axis, const ProcessGroup& group,
                                                          RecordingDevice& device) {
  return std::make_unique<RecordingCommunicator>(axis, group, device);
}

}  // namespace redspine
