#include "parallel/process_mesh.h"

#include <cassert>

namespace redspine {

ProcessMesh::AxisRanks ProcessMesh::make_axis(RankGroup group, Device& device, Collectives chosen) {
  auto communicator = make_communicator(group, device, chosen);
  return {std::move(group), std::move(communicator)};
}

ProcessMesh::ProcessMesh(const RankGroup& world, int tensor_size, Device& device,
                         Collectives collectives)
    : world_(world), axes_([&]() -> decltype(axes_) {
        assert(world.size() % tensor_size == 0);
        const Collectives chosen = choose_collectives(world, device, collectives);
        return {make_axis(world.split(world.rank() % tensor_size), device, chosen),
                make_axis(world.split(world.rank() / tensor_size), device, chosen)};
      }()) {}

void ProcessMesh::begin_step(std::int64_t step) const {
  for (const AxisRanks& axis : axes_) axis.communicator->begin_step(step);
}

}  // namespace redspine
