// The ranks of a job as a grid of axes: world rank = data rank * tensor size + tensor rank, so the
// ranks of a tensor group are neighbours and share a host where the launcher fills hosts in order.
#pragma once

#include <array>
#include <memory>

#include "parallel/group/communicator.h"
#include "parallel/group/process_group.h"

namespace redspine {

enum class Axis { data, tensor };
inline constexpr int kNumAxes = 2;

class ProcessMesh {
 public:
  /// Collective over `world`, whose size `tensor_size` divides. `world` and `device` outlive it.
  /// Both axes use the collectives that suit the world.
  ProcessMesh(const ProcessGroup& world, int tensor_size, Device& device,
              CollectiveBackend collectives = CollectiveBackend::automatic);

  const ProcessGroup& world() const { return world_; }
  /// The ranks that differ from this one in `axis` alone: their host collectives ...
  const ProcessGroup& group(Axis axis) const { return axes_[index(axis)].group; }
  /// ... and their collectives on device memory.
  Communicator& along(Axis axis) const { return *axes_[index(axis)].communicator; }
  /// Both communicators are told: Communicator::begin_step.
  void begin_step(std::int64_t step) const;

 private:
  struct AxisRanks {
    ProcessGroup group;
    std::unique_ptr<Communicator> communicator;
  };
  static std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }
  static AxisRanks make_axis(ProcessGroup group, Device& device, CollectiveBackend chosen);

  const ProcessGroup& world_;
  std::array<AxisRanks, kNumAxes> axes_;
};

}  // namespace redspine
