#include "model/initialize.h"

#include <xxhash.h>

#include <algorithm>

#include "tensor/philox.h"
#include "tensor/random_normal.h"

namespace redspine {
namespace {

// Where this rank's share lies in the global parameter, seen as a matrix.
MatrixPiece piece_of(const ParameterSpec& spec) {
  const Shape local = spec.local_shape();
  const std::int64_t global_cols = spec.global_shape.rank() == 1 ? 1 : spec.global_shape[1];
  const std::int64_t local_cols = local.rank() == 1 ? 1 : local[1];
  return {.num_rows = local[0],
          .num_cols = local_cols,
          .first_element = spec.local.begin * (spec.sharded_dim == 0 ? global_cols : 1),
          .row_stride = global_cols};
}

}  // namespace

void initialize_parameters(ParameterStore& store, std::uint64_t seed, Device& device) {
  std::vector<float> values;
  for (const Parameter& parameter : store.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    values.assign(static_cast<std::size_t>(parameter.value.count()), spec.initial_mean);
    if (spec.initial_std > 0.0F) {
      const std::uint64_t name = XXH3_64bits(spec.name.data(), spec.name.size());
      fill_normal(values, piece_of(spec), random_key(seed, name), spec.initial_std);
    }
    device.upload(parameter.value.reshape({parameter.value.count()}),
                  host_view(std::span<const float>(values)));
  }
  store.refresh_working(device);
}

}  // namespace redspine
