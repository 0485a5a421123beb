#include "trainer/checkpoint/tensor_gather.h"

#include <algorithm>
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

TensorGather::TensorGather(const ParameterStore& parameters, const ProcessGroup& ranks, Of of)
    : parameters_(parameters), ranks_(ranks), of_(of) {
  std::vector<Given> mine;
  for (const Parameter& parameter : parameters.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    index_[spec.name] = mine.size();
    const Range rows = of == Of::values ? Range{0, parameter.value.dim(0)} : parameter.updated;
    Given given{.range = spec.owned, .rows = rows};
    if (spec.sharded_dim == 0) {
      given.range.begin = std::max(spec.owned.begin, spec.local.begin + rows.begin);
      given.range.end =
          std::max(given.range.begin, std::min(spec.owned.end, spec.local.begin + rows.end));
    }
    mine.push_back(given);
  }
  const std::string message(reinterpret_cast<const char*>(mine.data()),
                            mine.size() * sizeof(Given));
  for (const std::string& theirs : ranks.all_gather(message)) {
    if (!theirs.empty()) std::memcpy(mine.data(), theirs.data(), theirs.size());
    given_.push_back(mine);
  }
}

Slab TensorGather::slab_of(std::size_t parameter, const Given& given) const {
  const ParameterSpec& spec = parameters_.parameters()[parameter].spec;
  Slab slab{.parameter_shape = spec.global_shape, .dim = spec.sharded_dim, .range = given.range};
  if (spec.sharded_dim == 1) slab.rows = given.rows;
  return slab;
}

// What a rank gives lies in one piece: rows of what it has.
ConstTensorView TensorGather::own_share(std::size_t index, ConstTensorView flat) const {
  const Parameter& parameter = parameters_.parameters()[index];
  const Given& given = given_[static_cast<std::size_t>(ranks_.rank())][index];
  const bool is_cut = parameter.spec.sharded_dim == 0;
  const std::int64_t row =
      is_cut ? given.range.begin - parameter.spec.local.begin : given.rows.begin;
  const std::int64_t begin =
      of_ == Of::values
          ? parameter.offset + row * parameter.row_size()
          : parameter.moments_offset + (row - parameter.updated.begin) * parameter.row_size();
  return flat.slice(begin, slab_of(index, given).count());
}

std::span<const float> TensorGather::gather(std::span<const Wanted> of_ranks, const Fetch& fetch) {
  const auto self = static_cast<std::size_t>(ranks_.rank());
  std::vector<ProcessGroup::Outgoing> outgoing;
  std::size_t num_passing = 0;
  const auto fetch_own = [&](std::size_t index, ConstTensorView flat) {
    if (num_passing == passing_.size()) passing_.emplace_back();
    return fetch(own_share(index, flat), passing_[num_passing++]);
  };
  for (std::size_t to = 0; to < of_ranks.size(); ++to) {
    if (to == self || of_ranks[to].tensor == nullptr) continue;
    for (const StoredPart& part : of_ranks[to].tensor->parts) {
      const std::size_t index = index_.at(part.parameter);
      if (slab_of(index, given_[self][index]).count() == 0) continue;
      outgoing.push_back(
          {std::as_bytes(fetch_own(index, of_ranks[to].flat)), static_cast<int>(to)});
    }
  }
  const auto [tensor, flat] = of_ranks[self];
  if (tensor == nullptr) {
    ranks_.exchange(outgoing, {});
    return {};
  }

  // A share that is stored as it is held comes into its place; others come beside it.
  struct Piece {
    StoredRegion region;
    std::span<const float> values;
  };
  struct Expected {
    StoredRegion region;
    int from;
  };
  std::vector<Piece> pieces;
  std::vector<Expected> expected;
  std::int64_t num_beside = 0;
  for (const StoredPart& part : tensor->parts) {
    const std::size_t index = index_.at(part.parameter);
    for (std::size_t from = 0; from < given_.size(); ++from) {
      const Slab slab = slab_of(index, given_[from][index]);
      if (slab.count() == 0) continue;
      const StoredRegion region = region_of(*tensor, part, slab);
      if (from == self) {
        pieces.push_back({region, fetch_own(index, flat)});
        continue;
      }
      expected.push_back({region, static_cast<int>(from)});
      if (!is_contiguous(*tensor, region)) num_beside += region.count();
    }
  }
  if (expected.empty() && pieces.size() == 1 && is_contiguous(*tensor, pieces.front().region)) {
    ranks_.exchange(outgoing, {});
    return pieces.front().values;
  }
  const std::span<float> whole = whole_.take(tensor->shape.count());
  std::span<float> beside = received_.take(num_beside);
  std::vector<ProcessGroup::Incoming> incoming;
  for (const auto& [region, from] : expected) {
    const auto count = static_cast<std::size_t>(region.count());
    if (is_contiguous(*tensor, region)) {
      const auto place = whole.subspan(first_element(*tensor, region), count);
      incoming.push_back({std::as_writable_bytes(place), from});
      continue;
    }
    incoming.push_back({std::as_writable_bytes(beside.first(count)), from});
    pieces.push_back({region, beside.first(count)});
    beside = beside.subspan(count);
  }
  ranks_.exchange(outgoing, incoming);
  for (const Piece& piece : pieces) copy_slab_to_stored(whole, piece.values, *tensor, piece.region);
  return whole;
}

}  // namespace redspine
