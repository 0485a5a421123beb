#include "parallel/mesh/choose_communicator.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "parallel/mpi/mpi_communicator.h"
#include "parallel/nccl/nccl_communicator.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// A group of one, which has all that its collectives would bring. It has nobody to send to, which
// Communicator says before these are called.
class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(Device& device) : device_(device) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(TensorView, ReduceOp, Stream) override {}
  void begin_step(std::int64_t) override {}

 private:
  void enqueue_reduce_scatter(TensorView, std::vector<Range>, ReduceOp, Stream) override {}
  // The sum is there already, or lies apart as its only summand.
  void enqueue_all_reduce_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                   const SumOrder&, Stream) override {
    if (out.raw() != summands.front().raw()) device_.copy(out, summands.front());
  }
  void enqueue_reduce_scatter_in_order(TensorView out, std::vector<ConstTensorView> summands,
                                       std::vector<Range>, const SumOrder& order,
                                       Stream stream) override {
    enqueue_all_reduce_in_order(out, std::move(summands), order, stream);
  }
  void enqueue_all_gather(TensorView, std::vector<Range>, Stream) override {}
  void enqueue_broadcast(TensorView, int, Stream) override {}
  void enqueue_send(ConstTensorView, int, Stream) override {}
  void enqueue_recv(TensorView, int, Stream) override {}

  Device& device_;
};

// Two ranks that compute on one device, in words; empty where each has its own.
std::string shared_device(const ProcessGroup& group, const Device& device) {
  const std::string mine = fmt::format("{} of {}", device.bus_id(), group.host_name());
  const std::vector<std::string> of_ranks = group.all_gather(mine);
  std::map<std::string, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto [entry, is_new] = rank_of.try_emplace(of_ranks[rank], rank);
    if (!is_new) {
      return fmt::format("ranks {} and {} share the GPU {}", entry->second, rank, of_ranks[rank]);
    }
  }
  return "";
}

[[noreturn]] void reject_nccl(const std::string& reason) {
  throw ConfigError("run.collectives",
                    fmt::format("is nccl, but {}; legal here: auto, mpi", reason));
}

}  // namespace

CollectiveBackend choose_collective_backend(const ProcessGroup& group, const Device& device,
                                            CollectiveBackend requested) {
  if (requested == CollectiveBackend::mpi) return CollectiveBackend::mpi;
  const bool is_wanted = requested == CollectiveBackend::nccl;
  if (device.kind() != DeviceKind::cuda) {
    if (is_wanted) reject_nccl("the ranks compute on CPUs");
    return CollectiveBackend::mpi;
  }
  const std::string shared = shared_device(group, device);
  if (!is_wanted && (group.size() == 1 || !shared.empty())) return CollectiveBackend::mpi;
  // After what the ranks do together: one of them may be on a machine that lacks the library.
  if (nccl_version().empty()) {
    if (is_wanted) reject_nccl("NCCL is not in this build");
    return CollectiveBackend::mpi;
  }
  if (shared.empty()) return CollectiveBackend::nccl;
  reject_nccl(fmt::format("{}, which NCCL does not serve", shared));
}

std::unique_ptr<Communicator> make_communicator(const ProcessGroup& group, Device& device,
                                                CollectiveBackend chosen) {
  if (group.size() == 1) return std::make_unique<SelfCommunicator>(device);
  switch (chosen) {
    case CollectiveBackend::nccl:
      return make_nccl_communicator(group, device);
    case CollectiveBackend::mpi:
      return make_mpi_communicator(group, device);
    case CollectiveBackend::automatic:
      break;
  }
  throw Error("collectives are made of a backend that was chosen, not of auto");
}

}  // namespace redspine
