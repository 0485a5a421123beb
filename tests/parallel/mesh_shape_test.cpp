#include "parallel/mesh_shape.h"

#include <gtest/gtest.h>

#include <set>

namespace redspine::testing {
namespace {

TEST(MeshShape, DataHasTheRanksThatTensorLeaves) {
  const MeshShape shape = MeshShape::of(12, 4);
  EXPECT_EQ(shape.num_ranks(), 12);
  EXPECT_EQ(shape.size(Axis::data), 3);
  EXPECT_EQ(shape.size(Axis::tensor), 4);
  EXPECT_TRUE(MeshShape::fits(12, 4));
  EXPECT_FALSE(MeshShape::fits(12, 5));
}

TEST(MeshShape, RanksAlongTheLastAxisAreNeighbours) {
  const MeshShape shape = MeshShape::of(6, 3);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(shape.coordinate(rank, Axis::data), rank < 3 ? 0 : 1) << rank;
    EXPECT_EQ(shape.first_along(rank, Axis::tensor), rank < 3 ? 0 : 3) << rank;
  }
  EXPECT_EQ(shape.coordinate(4, Axis::tensor), 1);
  EXPECT_EQ(shape.first_along(4, Axis::data), 1);
  EXPECT_EQ(shape.first_along(5, Axis::data), 2);
}

TEST(MeshShape, EveryRankHasAPlaceOfItsOwn) {
  const MeshShape shape({3, 5});
  std::set<MeshShape::Coordinates> places;
  for (int rank = 0; rank < shape.num_ranks(); ++rank) {
    const MeshShape::Coordinates place = shape.coordinates(rank);
    EXPECT_EQ(shape.rank_at(place), rank);
    for (std::size_t i = 0; i < kNumAxes; ++i) {
      EXPECT_GE(place[i], 0);
      EXPECT_LT(place[i], shape.size(kAxes[i]));
      EXPECT_EQ(shape.coordinate(rank, kAxes[i]), place[i]);
    }
    places.insert(place);
  }
  EXPECT_EQ(places.size(), 15U);
}

TEST(MeshShape, AxesAreListedOnceAndHaveNames) {
  EXPECT_EQ(std::set(kAxes.begin(), kAxes.end()).size(), kNumAxes);
  EXPECT_STREQ(name_of(Axis::data), "data");
  EXPECT_STREQ(name_of(Axis::tensor), "tensor");
}

}  // namespace
}  // namespace redspine::testing
