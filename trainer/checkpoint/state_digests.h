// The digests of a state: of what each rank holds, and from these of every tensor of a checkpoint.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/format/training_json.h"
#include "trainer/checkpoint/tensor_gather.h"
#include "trainer/digest/held_parts.h"
#include "trainer/digest/replica_check.h"

namespace redspine {

/// What distinguishes a moment from the values of the parameter of the same name.
DigestKey digest_key(StatePart part, std::string_view parameter, const Shape& shape);

/// Of one rank's parts, [state part][held part]. A moment's key is that of its stored name.
using PartDigests = std::array<std::vector<Digest>, kStateParts.size()>;

/// Of the elements of `parts` in `flat`, which is that part of a state (TrainingTensors). Of
/// moments that other ranks have, none. Local.
std::vector<Digest> digests_of(std::span<const HeldPart> parts, const ParameterStore& store,
                               StatePart part, ConstTensorView flat, const Fetch& fetch);

/// That of all tensors of a part together.
Digest& total_of(StateDigests& digests, StatePart part);
const Digest& total_of(const StateDigests& digests, StatePart part);

/// Of whole tensors, from those of the ranks' parts. Collective over the world.
StateDigests state_digests(const PartDigests& digests, std::span<const HeldPart> parts,
                           const ParameterStore& store, std::span<const StoredTensor> tensors,
                           const ReplicaGroups& groups);

}  // namespace redspine
