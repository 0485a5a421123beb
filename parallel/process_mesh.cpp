#include "parallel/process_mesh.h"

#include <cassert>

namespace redspine {

ProcessMesh::AxisRanks ProcessMesh::make_axis(RankGroup group, Device& device) {
  auto communicator = make_communicator(group, device);
  return {std::move(group), std::move(communicator)};
}

ProcessMesh::ProcessMesh(const RankGroup& world, int tensor_size, Device& device)
    : world_(world),
      axes_{make_axis(world.split(world.rank() % tensor_size), device),
            make_axis(world.split(world.rank() / tensor_size), device)} {
  assert(world.size() % tensor_size == 0);
}

}  // namespace redspine
