#include "parallel/mpi/mpi_communicator.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "parallel/group/mpi_handle.h"
#include "parallel/partition.h"
#include "parallel/shared_memory/shared_memory_all_reduce.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

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

// MPI counts are `int`. Longer buffers go in pieces of this many elements.
constexpr std::int64_t kMaxElementsPerCall = std::int64_t{1} << 28;
// What passes through host memory at once: long enough for full speed, short enough to pin.
constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

// `values` lie in host memory and fit into one call.
void all_reduce_piece(TensorView values, ReduceOp op, MPI_Comm communicator) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.raw(), static_cast<int>(values.count()),
                          mpi_type(values.dtype()), op == ReduceOp::sum ? MPI_SUM : MPI_MAX,
                          communicator),
            "MPI_Allreduce");
}

// Rounded once, after the last addition.
void all_reduce_bf16_piece(TensorView values, ReduceOp op, MPI_Comm communicator) {
  auto* narrow = values.data<BFloat16>();
  std::vector<float> wide(static_cast<std::size_t>(values.count()));
  std::transform(narrow, narrow + values.count(), wide.begin(),
                 [](BFloat16 value) { return static_cast<float>(value); });
  all_reduce_piece({wide.data(), DType::f32, values.shape()}, op, communicator);
  std::transform(wide.begin(), wide.end(), narrow, [](float value) { return BFloat16(value); });
}

// One stream's way to MPI. MPI matches the calls on a communicator by their order, and two streams
// run in two threads, so each has a communicator of its own.
class StreamGroup {
 public:
  StreamGroup(const ProcessGroup& group, Device& device)
      : device_(device), is_staged_(!device.has_host_memory()), group_(group.split(0)) {}
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;

  // In the stream's thread.
  void all_reduce(TensorView values, ReduceOp op) {
    const auto size = static_cast<std::int64_t>(size_of(values.dtype()));
    const std::int64_t most = is_staged_ ? kStagingBytes / size : kMaxElementsPerCall;
    const TensorView flat = values.reshape({values.count()});
    for (const Range& range : pieces(values.count(), most)) {
      const TensorView piece = flat.slice(range.begin, range.size());
      if (!is_staged_) {
        all_reduce_in_host_memory(piece, op);
        continue;
      }
      if (!staging_) staging_.emplace(device_, DType::bf16, Shape{kStagingBytes / 2});
      const TensorView staged(staging_->view().raw(), values.dtype(), piece.shape());
      device_.read(staged, piece);
      all_reduce_in_host_memory(staged, op);
      device_.write(piece, staged);
    }
  }

 private:
  void all_reduce_in_host_memory(TensorView values, ReduceOp op) {
    if (!shared_memory_) shared_memory_ = SharedMemoryAllReduce::make(group_);
    if (*shared_memory_ != nullptr) {
      (*shared_memory_)->all_reduce(values, op);
    } else if (values.dtype() == DType::bf16) {
      all_reduce_bf16_piece(values, op, group_.handle().communicator);
    } else {
      all_reduce_piece(values, op, group_.handle().communicator);
    }
  }

  Device& device_;
  bool is_staged_;
  ProcessGroup group_;
  // Made by the first call, since few streams have one. Null between hosts.
  std::optional<std::unique_ptr<SharedMemoryAllReduce>> shared_memory_;
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
    StreamGroup* stream_group = stream_groups_[static_cast<std::size_t>(stream)].get();
    device_.enqueue(stream, [values, op, stream_group] { stream_group->all_reduce(values, op); });
  }

  void begin_step(std::int64_t) override {}

 private:
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
