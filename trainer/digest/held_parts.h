// What a rank holds of each parameter, as digests see it: in parts whose elements are all held by
// the same tensor ranks and updated by one data rank, so that parts can be compared and each
// element of the model counted once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "parallel/group/process_group.h"
#include "tensor/digest.h"

namespace redspine {

struct HeldPart {
  std::size_t parameter;  // in the store
  Range range;            // of its sharded dim
  std::int64_t begin;     // of the flat buffers
  std::int64_t count;
  DigestPlace place;               // under the parameter's name
  int num_holders = 1;             // ranks of the tensor axis
  bool is_owned = true;            // this rank alone counts it
  bool is_updated = true;          // this rank has its moments, and they lie there:
  std::int64_t moments_begin = 0;  // in a moment's buffer
};

/// In the order of the store, which has been told of all its parameters. Collective over the tensor
/// axis, whose ranks declare the same parameters.
std::vector<HeldPart> held_parts(const ParameterStore& store, const ProcessGroup& tensor_axis);
/// Of a store that is not split. Local.
std::vector<HeldPart> held_parts(const ParameterStore& store);

}  // namespace redspine
