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

// `local` cut wherever the share of a rank begins or ends.
std::vector<Range> cut(const Range& local, const std::vector<Held>& of_ranks) {
  std::vector<std::int64_t> bounds = {local.begin, local.end};
  for (const Held& held : of_ranks) {
    for (const Range& range : {held.local, held.owned}) {
      if (range.size() == 0) continue;
      bounds.push_back(std::clamp(range.begin, local.begin, local.end));
      bounds.push_back(std::clamp(range.end, local.begin, local.end));
    }
  }
  std::sort(bounds.begin(), bounds.end());
  std::vector<Range> ranges;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i - 1] < bounds[i]) ranges.push_back({bounds[i - 1], bounds[i]});
  }
  return ranges;
}

HeldPart part_of(const Parameter& parameter, std::size_t index, const Range& range) {
  const ParameterSpec& spec = parameter.spec;
  const DigestKey key = digest_key(spec.name, spec.global_shape);
  if (spec.sharded_dim == 1) {
    assert(range == spec.local);
    return {.parameter = index,
            .range = range,
            .begin = parameter.offset,
            .count = parameter.spec.local_shape().count(),
            .place = {.key = key,
                      .first = range.begin,
                      .columns = range.size(),
                      .row_stride = spec.global_shape[1]}};
  }
  const std::int64_t row_size = spec.global_shape.count() / spec.global_shape[0];
  return {.parameter = index,
          .range = range,
          .begin = parameter.offset + (range.begin - spec.local.begin) * row_size,
          .count = range.size() * row_size,
          .place = {.key = key, .first = range.begin * row_size}};
}

}  // namespace

std::vector<HeldPart> held_parts(const ParameterStore& store, const ProcessGroup& tensor_axis) {
  std::vector<Held> mine;
  for (const Parameter& parameter : store.parameters()) {
    mine.push_back({.local = parameter.spec.local, .owned = parameter.spec.owned});
  }
  std::vector<std::vector<Held>> of_parameters(mine.size());  // [parameter][tensor rank]
  const std::string message(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Held));
  for (const std::string& theirs : tensor_axis.all_gather(message)) {
    assert(theirs.size() == message.size());
    for (std::size_t p = 0; p < mine.size(); ++p) {
      Held& held = of_parameters[p].emplace_back();
      std::memcpy(&held, theirs.data() + p * sizeof(Held), sizeof(Held));
    }
  }
  std::vector<HeldPart> parts;
  for (std::size_t p = 0; p < mine.size(); ++p) {
    for (const Range& range : cut(mine[p].local, of_parameters[p])) {
      HeldPart& part = parts.emplace_back(part_of(store.parameters()[p], p, range));
      part.num_holders = static_cast<int>(
          std::count_if(of_parameters[p].begin(), of_parameters[p].end(),
                        [&range](const Held& held) { return contains(held.local, range); }));
      part.is_owned = contains(mine[p].owned, range);
    }
  }
  return parts;
}

std::vector<HeldPart> held_parts(const ParameterStore& store) {
  std::vector<HeldPart> parts;
  for (std::size_t p = 0; p < store.parameters().size(); ++p) {
    const Parameter& parameter = store.parameters()[p];
    parts.push_back(part_of(parameter, p, parameter.spec.local));
  }
  return parts;
}

}  // namespace redspine
