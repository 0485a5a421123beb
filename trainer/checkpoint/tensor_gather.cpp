#include "trainer/checkpoint/tensor_gather.h"

#include <cstring>

namespace redspine {
namespace {

// Whether a slab is stored as it is held, without gaps.
bool is_contiguous(const StoredTensor& tensor, const StoredRegion& region) {
  return tensor.orientation == Orientation::as_is &&
         (region.columns.size() == tensor.num_columns() || region.rows.size() == 1);
}

std::size_t first_element(const StoredTensor& tensor, const StoredRegion& region) {
  return static_cast<std::size_t>(region.rows.begin * tensor.num_columns() + region.columns.begin);
}

}  // namespace

Fetch fetch_from(Device& device) {
  if (device.has_host_memory()) {
    return [](ConstTensorView from, HostBuffer&) { return host_values(from); };
  }
  return [&device](ConstTensorView from, HostBuffer& buffer) -> std::span<const float> {
    const std::span<float> to = buffer.take(from.count());
    device.download(host_view(to), from);
    return to;
  };
}

TensorGather::TensorGather(const ParameterStore& parameters, const ProcessGroup& tensor_axis)
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
  const std::span<float> whole = whole_.take(self == to ? tensor.shape.count() : 0);
  for (const StoredPart& part : tensor.parts) {
    const std::size_t index = index_.at(part.parameter);
    const Parameter& parameter = parameters_.parameters()[index];
    for (int from = 0; from < tensor_axis_.size(); ++from) {
      if (self != from && self != to) continue;
      const Held& held = held_[static_cast<std::size_t>(from)][index];
      if (held.owned.size() == 0) continue;
      const Slab slab{
          .parameter_shape = part.shape, .dim = parameter.spec.sharded_dim, .range = held.owned};
      const StoredRegion region = region_of(tensor, part, slab);
      const bool lies_in_one_piece = is_contiguous(tensor, region);
      if (self == from) {
        // A share that is not all of what is held is some of its rows.
        const std::int64_t row_size = slab.count() / slab.shape()[0];
        const std::int64_t skipped =
            (held.owned.begin - held.local.begin) * (held.owned == held.local ? 0 : row_size);
        const std::span<const float> share =
            fetch(flat.slice(parameter.offset + skipped, slab.count()), share_);
        if (self != to) {
          tensor_axis_.send(std::as_bytes(share), to);
        } else if (lies_in_one_piece && slab.count() == tensor.shape.count()) {
          return share;
        } else {
          copy_slab_to_stored(whole, share, tensor, region);
        }
        continue;
      }
      const std::span<float> share =
          lies_in_one_piece
              ? whole.subspan(first_element(tensor, region), static_cast<std::size_t>(slab.count()))
              : share_.take(slab.count());
      tensor_axis_.receive(std::as_writable_bytes(share), from);
      if (!lies_in_one_piece) copy_slab_to_stored(whole, share, tensor, region);
    }
  }
  return whole;
}

}  // namespace redspine
