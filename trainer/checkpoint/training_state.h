// The tensors that a checkpoint holds, as one rank has them: views into the flat buffers of its
// parameters and moments. Borrowed.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "tensor/digest.h"

namespace redspine {

/// Values are laid out as ParameterStore's flat buffers, moments as its shares say.
struct TrainingTensors {
  TensorView values;
  TensorView exp_avg;
  TensorView exp_avg_sq;
  // Of held_parts() that this rank updates, as a step left them; none: not known.
  std::vector<Digest> value_digests = {};
};

/// The parts of a state in the order in which they are stored, and what their names begin with.
enum class StatePart { value, exp_avg, exp_avg_sq };
inline constexpr std::array kStateParts = {StatePart::value, StatePart::exp_avg,
                                           StatePart::exp_avg_sq};
/// "", "exp_avg." or "exp_avg_sq.".
std::string prefix_of(StatePart part);
TensorView view_of(const TrainingTensors& tensors, StatePart part);

}  // namespace redspine
