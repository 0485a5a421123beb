#include "parallel/mesh/process_mesh.h"

#include <cassert>

#include "parallel/mesh/choose_communicator.h"

namespace redspine {

ProcessMesh::ProcessMesh(const ProcessGroup& world, const MeshShape& shape, Device& device,
                         CollectiveBackend collectives)
    : world_(world), shape_(shape) {
  assert(shape.num_ranks() == world.size());
  const CollectiveBackend chosen = choose_collective_backend(world, device, collectives);
  for (const Axis axis : kAxes) {
    ProcessGroup group = world.split(shape.first_along(world.rank(), axis));
    auto communicator = make_communicator(group, device, chosen);
    axes_.emplace(axis, AxisRanks{std::move(group), std::move(communicator)});
  }
}

ProcessMesh::ProcessMesh(const ProcessGroup& imagined_world, const MeshShape& shape,
                         const MakeCommunicator& make)
    : world_(imagined_world), shape_(shape) {
  assert(shape.num_ranks() == imagined_world.size());
  for (const Axis axis : kAxes) {
    ProcessGroup group =
        ProcessGroup::imagined(shape.coordinate(imagined_world.rank(), axis), shape.size(axis));
    auto communicator = make(axis, group);
    axes_.emplace(axis, AxisRanks{std::move(group), std::move(communicator)});
  }
}

void ProcessMesh::begin_step(std::int64_t step) const {
  for (const auto& [axis, ranks] : axes_) ranks.communicator->begin_step(step);
}

}  // namespace redspine
