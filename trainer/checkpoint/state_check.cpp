#include "trainer/checkpoint/state_check.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "parallel/group/failure.h"

namespace redspine {
namespace {

// As messages call the parts of a state.
constexpr std::array kStateNames = {"weights", "first moments", "second moments"};
static_assert(kStateNames.size() == kStateParts.size());

bool are_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000;  // all ones in infinity and NaN alone
  std::uint32_t num_bad = 0;
  for (const float value : values) {
    num_bad += (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  }
  return num_bad == 0;
}

}  // namespace

StateCheck::StateCheck(const ReplicaGroups& groups, const ParameterStore& parameters,
                       const std::vector<StoredTensor>& stored, std::string folder,
                       bool compares_replicas)
    : groups_(groups),
      parameters_(parameters),
      stored_(stored),
      folder_(std::move(folder)),
      replicas_(groups, parameters, held_parts(parameters, groups.tensor), compares_replicas) {}

StateDigests StateCheck::run(const TrainingTensors& tensors, std::int64_t step,
                             const Fetch& fetch) const {
  PartDigests digests;
  run_together(groups_.world, [&] {
    check_finite(tensors.values, fetch, step);
    for (std::size_t s = 0; s < kStateParts.size(); ++s) {
      digests[s] = digests_of(replicas_.parts(), parameters_, kStateParts[s],
                              view_of(tensors, kStateParts[s]), fetch);
    }
    check_unchanged(tensors.value_digests, digests.front(), step);
  });
  for (std::size_t s = 0; s < kStateParts.size(); ++s) {
    const std::string what = fmt::format("the save after step {}: the {}", step, kStateNames[s]);
    if (kStateParts[s] == StatePart::value) {
      replicas_.whole(digests[s], what);
    } else {
      replicas_.whole_of_updated(digests[s], what);
    }
  }
  return state_digests(digests, replicas_.parts(), parameters_, stored_, groups_);
}

// A model that is beyond repair must not take the place of one that is not.
void StateCheck::check_finite(ConstTensorView values, const Fetch& fetch, std::int64_t step) const {
  HostBuffer buffer;
  for (const Parameter& parameter : parameters_.parameters()) {
    if (are_finite(fetch(values.slice(parameter.offset, parameter.value.count()), buffer))) {
      continue;
    }
    throw Error(
        fmt::format("after step {} the parameter {} is not finite, so no checkpoint is "
                    "written; those in {} stay",
                    step, parameter.spec.name, folder_));
  }
}

void StateCheck::check_unchanged(std::span<const Digest> before, std::span<const Digest> now,
                                 std::int64_t step) const {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!replicas_.parts()[i].is_updated || before[i] == now[i]) continue;
    const std::size_t parameter = replicas_.parts()[i].parameter;
    throw Error(fmt::format(
        "the parameter {} has changed since step {} left it (digest {}, now {}), as only a faulty "
        "memory or processor does, so no checkpoint is written; those in {} stay",
        parameters_.parameters()[parameter].spec.name, step, before[i].text(), now[i].text(),
        folder_));
  }
}

}  // namespace redspine
