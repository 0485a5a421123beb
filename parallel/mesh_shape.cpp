#include "parallel/mesh_shape.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

namespace redspine {

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::data:
      return "data";
    case Axis::tensor:
      return "tensor";
  }
  return "unknown";
}

MeshShape MeshShape::of(int num_ranks, int tensor_size) {
  Coordinates sizes{};
  sizes[index(Axis::tensor)] = tensor_size;
  sizes[index(Axis::data)] = num_ranks / tensor_size;
  return MeshShape(sizes);
}

int MeshShape::num_ranks() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), 1, std::multiplies<>());
}

int MeshShape::coordinate(int rank, Axis axis) const { return coordinates(rank)[index(axis)]; }

MeshShape::Coordinates MeshShape::coordinates(int rank) const {
  assert(rank >= 0 && rank < num_ranks());
  Coordinates coordinates{};
  for (std::size_t i = kNumAxes; i-- > 0;) {
    coordinates[i] = rank % sizes_[i];
    rank /= sizes_[i];
  }
  return coordinates;
}

int MeshShape::rank_at(const Coordinates& coordinates) const {
  int rank = 0;
  for (std::size_t i = 0; i < kNumAxes; ++i) {
    assert(coordinates[i] >= 0 && coordinates[i] < sizes_[i]);
    rank = rank * sizes_[i] + coordinates[i];
  }
  return rank;
}

int MeshShape::first_along(int rank, Axis axis) const {
  Coordinates first = coordinates(rank);
  first[index(axis)] = 0;
  return rank_at(first);
}

std::size_t MeshShape::index(Axis axis) {
  return static_cast<std::size_t>(std::find(kAxes.begin(), kAxes.end(), axis) - kAxes.begin());
}

}  // namespace redspine
