#include <array>

#include "parallel/communicator.h"
#include "parallel/mpi_handle.h"
#include "parallel/partition.h"
#include "tensor/error.h"

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
      break;  // nothing that MPI could add
  }
  throw Error("a dtype that MPI does not know");
}

// MPI counts are `int`. Longer buffers go in pieces of this many elements.
constexpr std::int64_t kMaxElementsPerCall = std::int64_t{1} << 28;

void* at(const TensorView& values, std::int64_t element) {
  return static_cast<std::byte*>(values.raw()) +
         element * static_cast<std::int64_t>(size_of(values.dtype()));
}

// A group of one.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(TensorView, ReduceOp, Stream) override {}
};

// Collectives over host memory by MPI, each stream on a communicator of its own: MPI matches the
// calls on a communicator by their order, and two streams run in two threads.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const RankGroup& group, Device& device)
      : device_(device), rank_(group.rank()), size_(group.size()) {
    for (auto& handle : streams_) {
      MPI_Comm duplicate = MPI_COMM_NULL;
      check_mpi(MPI_Comm_dup(group.handle().communicator, &duplicate), "MPI_Comm_dup");
      handle = std::make_unique<RankGroup::Handle>(duplicate);
    }
  }

  // Nothing given to a stream may outlive the communicator that it uses.
  ~MpiCommunicator() override {
    for (int stream = 0; stream < kNumStreams; ++stream) {
      try {
        device_.synchronize(static_cast<Stream>(stream));
      } catch (const std::exception&) {
        // Reported where the stream's result was waited for; here the job is already ending.
        continue;
      }
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(TensorView values, ReduceOp op, Stream stream) override {
    device_.enqueue(stream, [values, op, communicator = on(stream)] {
      for (const Range& piece : pieces(values.count(), kMaxElementsPerCall)) {
        check_mpi(MPI_Allreduce(MPI_IN_PLACE, at(values, piece.begin),
                                static_cast<int>(piece.size()), mpi_type(values.dtype()),
                                op == ReduceOp::sum ? MPI_SUM : MPI_MAX, communicator),
                  "MPI_Allreduce");
      }
    });
  }

 private:
  MPI_Comm on(Stream stream) const {
    return streams_[static_cast<std::size_t>(stream)]->communicator;
  }

  Device& device_;
  int rank_;
  int size_;
  std::array<std::unique_ptr<RankGroup::Handle>, kNumStreams> streams_;
};

}  // namespace

std::unique_ptr<Communicator> make_communicator(const RankGroup& group, Device& device) {
  if (group.size() == 1) return std::make_unique<SelfCommunicator>();
  return std::make_unique<MpiCommunicator>(group, device);
}

}  // namespace redspine
