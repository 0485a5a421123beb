// The ranks of a job along the axes of their mesh (parallel/mesh_shape.h): for each axis the group
// of processes with their collectives on host memory, and a communicator for device memory.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "parallel/group/communicator.h"
#include "parallel/group/process_group.h"
#include "parallel/mesh_shape.h"

namespace redspine {

class ProcessMesh {
 public:
  /// Collective over `world`, which has as many ranks as `shape`. `world` and `device` outlive it.
  /// All axes use the collectives that suit the world.
  ProcessMesh(const ProcessGroup& world, const MeshShape& shape, Device& device,
              CollectiveBackend collectives = CollectiveBackend::automatic);
  /// Makes the communicator of an axis.
  using MakeCommunicator =
      std::function<std::unique_ptr<Communicator>(Axis axis, const ProcessGroup& group)>;
  /// The mesh around a rank of a world that is only thought of (ProcessGroup::imagined). Local.
  ProcessMesh(const ProcessGroup& imagined_world, const MeshShape& shape,
              const MakeCommunicator& make);

  const ProcessGroup& world() const { return world_; }
  const MeshShape& shape() const { return shape_; }
  /// The ranks that differ from this one in `axis` alone: their host collectives ...
  const ProcessGroup& group(Axis axis) const { return axes_.at(axis).group; }
  /// ... and their collectives on device memory.
  Communicator& along(Axis axis) const { return *axes_.at(axis).communicator; }
  /// All communicators are told: Communicator::begin_step.
  void begin_step(std::int64_t step) const;

 private:
  struct AxisRanks {
    ProcessGroup group;
    std::unique_ptr<Communicator> communicator;
  };

  const ProcessGroup& world_;
  MeshShape shape_;
  std::map<Axis, AxisRanks> axes_;
};

}  // namespace redspine
