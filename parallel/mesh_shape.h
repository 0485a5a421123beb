// The ranks of a job as a grid of axes: which axes there are, how many ranks lie along each, and
// where a rank is. Pure arithmetic, local; no other place computes with ranks.
#pragma once

#include <array>
#include <cstddef>

namespace redspine {

/// What the ranks along an axis share out: the samples of a batch, or the model itself.
enum class Axis { data, tensor };

/// All axes, outermost first. Ranks along the last one are neighbours, and share a host where the
/// launcher fills hosts in order.
inline constexpr std::array kAxes = {Axis::data, Axis::tensor};
inline constexpr std::size_t kNumAxes = kAxes.size();

const char* name_of(Axis axis);

class MeshShape {
 public:
  using Coordinates = std::array<int, kNumAxes>;  // in the order of kAxes

  explicit MeshShape(const Coordinates& sizes) : sizes_(sizes) {}
  /// `num_ranks` ranks, of which `tensor_size` share one model; data has the rest. It takes that
  /// the ranks can be laid out so.
  static MeshShape of(int num_ranks, int tensor_size);
  static bool fits(int num_ranks, int tensor_size) { return num_ranks % tensor_size == 0; }

  int num_ranks() const;
  int size(Axis axis) const { return sizes_[index(axis)]; }

  /// Where a rank is along an axis: [0, size(axis)).
  int coordinate(int rank, Axis axis) const;
  Coordinates coordinates(int rank) const;
  int rank_at(const Coordinates& coordinates) const;
  /// The lowest of the ranks that differ from `rank` in `axis` alone.
  int first_along(int rank, Axis axis) const;

 private:
  static std::size_t index(Axis axis);

  Coordinates sizes_;
};

}  // namespace redspine
