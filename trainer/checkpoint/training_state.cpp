#include "trainer/checkpoint/training_state.h"

namespace redspine {

std::string prefix_of(StatePart part) {
  switch (part) {
    case StatePart::value:
      break;
    case StatePart::exp_avg:
      return "exp_avg.";
    case StatePart::exp_avg_sq:
      return "exp_avg_sq.";
  }
  return "";
}

TensorView view_of(const TrainingTensors& tensors, StatePart part) {
  switch (part) {
    case StatePart::value:
      break;
    case StatePart::exp_avg:
      return tensors.exp_avg;
    case StatePart::exp_avg_sq:
      return tensors.exp_avg_sq;
  }
  return tensors.values;
}

}  // namespace redspine
