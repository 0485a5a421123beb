#include "parallel/mesh/process_mesh.h"

#include <cassert>

#include "parallel/mesh/choose_communicator.h"

namespace redspine {

ProcessMesh::AxisRanks ProcessMesh::make_axis(ProcessGroup group, Device& device,
                                              CollectiveBackend chosen) {
  auto communicator = make_communicator(group, device, chosen);
  return {std::move(group), std::move(communicator)};
}

ProcessMesh::ProcessMesh(const ProcessGroup& world, int tensor_size, Device& device,
                         CollectiveBackend collectives)
    : world_(world), axes_([&]() -> decltype(axes_) {
        assert(world.size() % tensor_size == 0);
        const CollectiveBackend chosen = choose_collective_backend(world, device, collectives);
        return {make_axis(world.split(world.rank() % tensor_size), device, chosen),
                make_axis(world.split(world.rank() / tensor_size), device, chosen)};
      }()) {}

void ProcessMesh::begin_step(std::int64_t step) const {
  for (const AxisRanks& axis : axes_) axis.communicator->begin_step(step);
}

}  // namespace redspine
