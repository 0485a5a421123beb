#include "parallel/mesh/process_mesh.h"

#include <gtest/gtest.h>

#include "tensor/tensor.h"
#include "tests/support/mpi_main.h"

namespace redspine::testing {
namespace {

std::vector<std::string> members_of(const ProcessGroup& group) {
  return group.all_gather(std::to_string(world().rank()));
}

TEST(ProcessMesh, TensorRanksAreNeighboursAndDataRanksAStrideApart) {
  const auto device = make_cpu_device(1);
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (!MeshShape::fits(world().size(), tensor)) continue;
    const ProcessMesh mesh(world(), MeshShape::of(world().size(), tensor), *device);
    EXPECT_EQ(&mesh.world(), &world());
    EXPECT_EQ(mesh.group(Axis::tensor).size(), tensor);
    EXPECT_EQ(mesh.group(Axis::data).size(), world().size() / tensor);
    EXPECT_EQ(world().rank(),
              mesh.group(Axis::data).rank() * tensor + mesh.group(Axis::tensor).rank());

    const int first = world().rank() / tensor * tensor;
    const std::vector<std::string> neighbours = members_of(mesh.group(Axis::tensor));
    EXPECT_EQ(neighbours.size(), static_cast<std::size_t>(tensor));
    for (int i = 0; i < tensor; ++i) {
      EXPECT_EQ(neighbours[static_cast<std::size_t>(i)], std::to_string(first + i));
    }
    const std::vector<std::string> replicas = members_of(mesh.group(Axis::data));
    for (int i = 0; i < world().size() / tensor; ++i) {
      EXPECT_EQ(replicas[static_cast<std::size_t>(i)],
                std::to_string(world().rank() % tensor + i * tensor));
    }
  }
}

TEST(ProcessMesh, CommunicatorsReachTheRanksOfTheirAxisOnly) {
  const auto device = make_cpu_device(1);
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (!MeshShape::fits(world().size(), tensor)) continue;
    const ProcessMesh mesh(world(), MeshShape::of(world().size(), tensor), *device);
    for (const Axis axis : kAxes) {
      const ProcessGroup& group = mesh.group(axis);
      EXPECT_EQ(mesh.along(axis).rank(), group.rank());
      EXPECT_EQ(mesh.along(axis).size(), group.size());
      const Tensor value(*device, DType::f64, {1});
      value.view().data<double>()[0] = world().rank();
      mesh.along(axis).all_reduce(value, ReduceOp::sum, Stream::compute);
      double expected = 0.0;
      for (const std::string& member : members_of(group)) expected += std::stod(member);
      EXPECT_EQ(value.view().data<double>()[0], expected);
    }
  }
}

}  // namespace
}  // namespace redspine::testing
