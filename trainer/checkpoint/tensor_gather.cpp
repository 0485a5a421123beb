#include "trainer/checkpoint/tensor_gather.h"

#include <cstring>

namespace redspine {

TensorGather::TensorGather(const ParameterStore& parameters, const RankGroup& tensor_axis)
    : parameters_(parameters), tensor_axis_(tensor_axis) {
  std::vector<Held> mine;
  for (const Parameter& parameter : parameters.parameters()) {
    index_[parameter.spec.name] = mine.size();
    mine.push_back({.local = parameter.spec.local, .owned = parameter.spec.owned});
  }
  const std::string message(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Held));
  for (const std::string& theirs : tensor_axis.all_gather(message)) {
    std::memcpy(mine.data(), theirs.data(), theirs.size());
    held_.push_back(mine);
  }
}

std::span<const float> TensorGather::gather(const StoredTensor& tensor, ConstTensorView flat,
                                            const Fetch& fetch, int to) {
  const int self = tensor_axis_.rank();
  whole_.resize(self == to ? static_cast<std::size_t>(tensor.shape.count()) : 0);
  for (const StoredPart& part : tensor.parts) {
    const std::size_t index = index_.at(part.parameter);
    const Parameter& parameter = parameters_.parameters()[index];
    for (int from = 0; from < tensor_axis_.size(); ++from) {
      if (self != from && self != to) continue;
      const Held& held = held_[static_cast<std::size_t>(from)][index];
      if (held.owned.size() == 0) continue;
      const Slab slab{
          .parameter_shape = part.shape, .dim = parameter.spec.sharded_dim, .range = held.owned};
      share_.resize(static_cast<std::size_t>(slab.count()));
      if (self == from) {
        // A share that is not all of what is held is some of its rows.
        const std::int64_t row_size = slab.count() / slab.shape()[0];
        const std::int64_t skipped =
            (held.owned.begin - held.local.begin) * (held.owned == held.local ? 0 : row_size);
        fetch(share_, flat.slice(parameter.offset + skipped, slab.count()));
        if (self != to) tensor_axis_.send(std::as_bytes(std::span(share_)), to);
      } else {
        tensor_axis_.receive(std::as_writable_bytes(std::span(share_)), from);
      }
      if (self == to) {
        copy_slab_to_stored(whole_, share_, tensor, region_of(tensor, part, slab));
      }
    }
  }
  return whole_;
}

}  // namespace redspine
