#include "trainer/checkpoint/state_digests.h"

#include <string>
#include <unordered_map>

namespace redspine {

DigestKey digest_key(StatePart part, std::string_view parameter, const Shape& shape) {
  return digest_key(prefix_of(part) + std::string(parameter), shape);
}

std::vector<Digest> digests_of(std::span<const HeldPart> parts, const ParameterStore& store,
                               StatePart part, ConstTensorView flat, const Fetch& fetch) {
  HostBuffer buffer;
  std::vector<Digest> digests;
  digests.reserve(parts.size());
  for (const HeldPart& held : parts) {
    const ParameterSpec& spec = store.parameters()[held.parameter].spec;
    const bool is_moment = part != StatePart::value;
    if (is_moment && !held.is_updated) {
      digests.emplace_back();
      continue;
    }
    DigestPlace place = held.place;
    place.key = digest_key(part, spec.name, spec.global_shape);
    const std::int64_t begin = is_moment ? held.moments_begin : held.begin;
    digests.push_back(digest_of(fetch(flat.slice(begin, held.count), buffer), place));
  }
  return digests;
}

Digest& total_of(StateDigests& digests, StatePart part) {
  switch (part) {
    case StatePart::value:
      break;
    case StatePart::exp_avg:
      return digests.exp_avg;
    case StatePart::exp_avg_sq:
      return digests.exp_avg_sq;
  }
  return digests.weights;
}
const Digest& total_of(const StateDigests& digests, StatePart part) {
  return total_of(const_cast<StateDigests&>(digests), part);  // NOLINT: nothing is changed
}

StateDigests state_digests(const PartDigests& digests, std::span<const HeldPart> parts,
                           const ParameterStore& store, std::span<const StoredTensor> tensors,
                           const ReplicaGroups& groups) {
  const std::size_t num_parameters = store.parameters().size();
  std::vector<Digest> owned(kStateParts.size() * num_parameters);  // [state part][parameter]
  for (std::size_t s = 0; s < kStateParts.size(); ++s) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].is_owned && parts[i].is_updated)
        owned[s * num_parameters + parts[i].parameter] += digests[s][i];
    }
  }
  std::vector<std::uint64_t> halves;
  for (const Digest& digest : owned) halves.insert(halves.end(), {digest.low, digest.high});
  groups.tensor.sum(halves);
  if (store.shares().are_apart()) groups.data.sum(halves);
  std::unordered_map<std::string, std::size_t> index_of;
  for (std::size_t p = 0; p < num_parameters; ++p) index_of[store.parameters()[p].spec.name] = p;
  StateDigests result;
  for (std::size_t s = 0; s < kStateParts.size(); ++s) {
    for (const StoredTensor& tensor : tensors) {
      Digest digest;
      for (const StoredPart& part : tensor.parts) {
        const std::size_t at = 2 * (s * num_parameters + index_of.at(part.parameter));
        digest += {.low = halves[at], .high = halves[at + 1]};
      }
      result.tensors[prefix_of(kStateParts[s]) + tensor.name] = digest;
      total_of(result, kStateParts[s]) += digest;
    }
  }
  return result;
}

}  // namespace redspine
