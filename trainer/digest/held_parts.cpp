#include "trainer/digest/held_parts.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace redspine {
namespace {

struct Held {
  Range local;
  Range owned;
};

bool contains(const Range& range, const Range& part) {
  return range.begin <= part.begin && part.end <= range.end;
}

// An item of dim 0 of a parameter with which the share of another data rank begins.
struct Cut {
  std::size_t parameter;
  std::int64_t item;  // of the whole parameter
};

std::vector<Cut> own_cuts(const ParameterStore& store) {
  std::vector<Cut> cuts;
  for (std::size_t p = 0; p < store.parameters().size(); ++p) {
    const Parameter& parameter = store.parameters()[p];
    const std::int64_t first = parameter.spec.sharded_dim == 0 ? parameter.spec.local.begin : 0;
    const Range elements{parameter.offset, parameter.offset + parameter.value.count()};
    for (const std::int64_t element : store.shares().cuts_in(elements)) {
      cuts.push_back({p, first + (element - elements.begin) / parameter.row_size()});
    }
  }
  return cuts;
}

template <class T>
std::vector<std::vector<T>> gather_all(const std::vector<T>& mine, const ProcessGroup& axis) {
  std::vector<std::vector<T>> all;  // [rank]
  const std::string message(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T));
  for (const std::string& theirs : axis.all_gather(message)) {
    all.emplace_back(theirs.size() / sizeof(T));
    if (!theirs.empty()) std::memcpy(all.back().data(), theirs.data(), theirs.size());
  }
  return all;
}

std::vector<Range> cut_at(const Range& range, std::vector<std::int64_t> bounds) {
  for (std::int64_t& bound : bounds) bound = std::clamp(bound, range.begin, range.end);
  bounds.insert(bounds.end(), {range.begin, range.end});
  std::sort(bounds.begin(), bounds.end());
  std::vector<Range> ranges;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i - 1] < bounds[i]) ranges.push_back({bounds[i - 1], bounds[i]});
  }
  return ranges;
}

// Of items [items.begin, items.end) of dim 0, counted over the whole parameter.
HeldPart part_of(const Parameter& parameter, std::size_t index, const Range& items) {
  const ParameterSpec& spec = parameter.spec;
  const bool has_all_items = spec.sharded_dim == 1;
  const std::int64_t row_size = parameter.row_size();
  const std::int64_t first = items.begin - (has_all_items ? 0 : spec.local.begin);
  const DigestKey key = digest_key(spec.name, spec.global_shape);
  HeldPart part{.parameter = index,
                .range = has_all_items ? spec.local : items,
                .begin = parameter.offset + first * row_size,
                .count = items.size() * row_size,
                .place = {.key = key, .first = items.begin * row_size}};
  if (has_all_items) {
    const std::int64_t row_stride = spec.global_shape[1];
    part.place.first = items.begin * row_stride + spec.local.begin;
    part.place.columns = row_size;
    part.place.row_stride = row_stride;
  }
  part.is_updated = first >= parameter.updated.begin && first < parameter.updated.end;
  if (part.is_updated) {
    part.moments_begin = parameter.moments_offset + (first - parameter.updated.begin) * row_size;
  }
  return part;
}

// Items of dim 0 that this rank has.
Range items_of(const ParameterSpec& spec) {
  return spec.sharded_dim == 0 ? spec.local : Range{0, spec.global_shape[0]};
}

}  // namespace

std::vector<HeldPart> held_parts(const ParameterStore& store, const ProcessGroup& tensor_axis) {
  const std::size_t num_parameters = store.parameters().size();
  std::vector<Held> mine;
  for (const Parameter& parameter : store.parameters()) {
    mine.push_back({.local = parameter.spec.local, .owned = parameter.spec.owned});
  }
  const std::vector<std::vector<Held>> of_ranks = gather_all(mine, tensor_axis);
  std::vector<std::vector<std::int64_t>> bounds(num_parameters);  // of items, [parameter]
  for (const std::vector<Held>& held : of_ranks) {
    assert(held.size() == num_parameters);
    for (std::size_t p = 0; p < num_parameters; ++p) {
      if (store.parameters()[p].spec.sharded_dim == 1) continue;
      for (const Range& range : {held[p].local, held[p].owned}) {
        if (range.size() > 0) bounds[p].insert(bounds[p].end(), {range.begin, range.end});
      }
    }
  }
  for (const std::vector<Cut>& cuts : gather_all(own_cuts(store), tensor_axis)) {
    for (const Cut& cut : cuts) bounds[cut.parameter].push_back(cut.item);
  }
  std::vector<HeldPart> parts;
  for (std::size_t p = 0; p < num_parameters; ++p) {
    const Parameter& parameter = store.parameters()[p];
    for (const Range& items : cut_at(items_of(parameter.spec), bounds[p])) {
      HeldPart& part = parts.emplace_back(part_of(parameter, p, items));
      part.num_holders = static_cast<int>(std::count_if(
          of_ranks.begin(), of_ranks.end(),
          [&](const std::vector<Held>& held) { return contains(held[p].local, part.range); }));
      part.is_owned = contains(mine[p].owned, part.range);
    }
  }
  return parts;
}

std::vector<HeldPart> held_parts(const ParameterStore& store) {
  std::vector<HeldPart> parts;
  for (std::size_t p = 0; p < store.parameters().size(); ++p) {
    const Parameter& parameter = store.parameters()[p];
    parts.push_back(part_of(parameter, p, items_of(parameter.spec)));
  }
  return parts;
}

}  // namespace redspine
