#include "parallel/process_mesh.h"

#include <gtest/gtest.h>

#include "tensor/tensor.h"
#include "tests/support/mpi_main.h"

namespace redspine::testing {
namespace {

std::vector<std::string> members_of(const RankGroup& group) {
  return group.all_gather(std::to_string(world().rank()));
}

TEST(ProcessMesh, TensorRanksAreNeighboursAndDataRanksAStrideApart) {
  const auto device = make_cpu_device(1);
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (world().size() % tensor != 0) continue;
    const ProcessMesh mesh(world(), tensor, *device);
    EXPECT_EQ(&mesh.world(), &world());
    EXPECT_EQ(mesh.group(Axis::tensor).size(), tensor);
    EXPECT_EQ(mesh.group(Axis::data).size(), world().size() / tensor);
    EXPECT_EQ(world().rank(),
              mesh.group(Axis::data).rank() * tensor + mesh.group(Axis::tensor).rank());

    std::vector<std::string> neighbours;
    for (int i = 0; i < tensor; ++i) {
      neighbours.push_back(std::to_string(world().rank() / tensor * tensor + i));
    }
    EXPECT_EQ(members_of(mesh.group(Axis::tensor)), neighbours);
    std::vector<std::string> replicas;
    for (int rank = world().rank() % tensor; rank < world().size(); rank += tensor) {
      replicas.push_back(std::to_string(rank));
    }
    EXPECT_EQ(members_of(mesh.group(Axis::data)), replicas);
  }
}

TEST(ProcessMesh, CommunicatorsReachTheRanksOfTheirAxisOnly) {
  const auto device = make_cpu_device(1);
  for (int tensor = 1; tensor <= world().size(); ++tensor) {
    if (world().size() % tensor != 0) continue;
    const ProcessMesh mesh(world(), tensor, *device);
    for (const Axis axis : {Axis::data, Axis::tensor}) {
      const RankGroup& group = mesh.group(axis);
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
