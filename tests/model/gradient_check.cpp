#include "tests/model/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr int kNumDirections = 3;

std::uint64_t key_of(const std::string& name, int number) {
  std::uint64_t key = static_cast<std::uint64_t>(number);
  for (const char letter : name) key = random_key(key, static_cast<std::uint64_t>(letter));
  return key;
}

std::vector<float> normal_values(const MatrixPiece& piece, std::uint64_t key, float spread) {
  std::vector<float> values(static_cast<std::size_t>(piece.num_rows * piece.num_cols));
  fill_normal(values, piece, key, spread);
  return values;
}

void upload(Device& device, const TensorView& to, const std::vector<float>& values) {
  device.upload(to.reshape({to.count()}), host_view(std::span(values)));
}

double add_over_ranks(double value) { return world().all_reduce(value, ReduceOp::sum); }

/// The loss with `variable` moved by `distance` along `direction`, then moved back.
double loss_at(const GradientCheck& check, const Variable& variable,
               const std::vector<float>& direction, double distance) {
  const std::vector<float> centre = from_device(check.device, variable.value);
  std::vector<float> moved = centre;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = static_cast<float>(static_cast<double>(centre[i]) +
                                  distance * static_cast<double>(direction[i]));
  }
  upload(check.device, variable.value, moved);
  const double loss = check.loss();
  upload(check.device, variable.value, centre);
  return loss;
}

double difference(const GradientCheck& check, const Variable& variable,
                  const std::vector<float>& direction, double step) {
  return (loss_at(check, variable, direction, step) - loss_at(check, variable, direction, -step)) /
         (2.0 * step);
}

}  // namespace

Variable replicated_input(const std::string& name, TensorView value, TensorView gradient) {
  return {.name = name,
          .value = value,
          .gradient = gradient,
          .piece = {.num_rows = value.rows(),
                    .num_cols = value.cols(),
                    .first_element = 0,
                    .row_stride = value.cols()},
          .counted_begin = 0,
          .counted_end = world().rank() == 0 ? value.count() : 0};
}

Variable input_columns(const std::string& name, TensorView value, TensorView gradient,
                       std::int64_t num_global, Range local) {
  Variable variable = replicated_input(name, value, gradient);
  variable.piece.first_element = local.begin;
  variable.piece.row_stride = num_global;
  variable.counted_end = value.count();
  return variable;
}

std::vector<Variable> parameters_of(const ParameterStore& store, SharedGradients gradients) {
  std::vector<Variable> variables;
  for (const Parameter& parameter : store.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    const bool is_matrix = spec.global_shape.rank() == 2;
    const bool is_by_rows = spec.sharded_dim == 0;
    const std::int64_t global_cols = is_matrix ? spec.global_shape[1] : 1;
    const std::int64_t num_cols = is_matrix ? parameter.value.dim(1) : 1;
    const bool is_apart =
        gradients == SharedGradients::apart && spec.local_gradient == LocalGradient::partial;
    const Range counted = is_apart ? spec.local : spec.owned;
    const std::int64_t begin = is_by_rows ? (counted.begin - spec.local.begin) * num_cols : 0;
    const std::int64_t count =
        counted == spec.local ? parameter.gradient.count() : counted.size() * num_cols;
    variables.push_back(
        {.name = spec.name,
         .value = parameter.value,
         .gradient = parameter.gradient,
         .piece = {.num_rows = parameter.value.dim(0),
                   .num_cols = num_cols,
                   .first_element = is_by_rows ? spec.local.begin * global_cols : spec.local.begin,
                   .row_stride = global_cols},
         .counted_begin = counted.size() == 0 ? 0 : begin,
         .counted_end = counted.size() == 0 ? 0 : begin + count});
  }
  return variables;
}

void randomize(const Variable& variable, Device& device, float spread) {
  upload(device, variable.value, normal_values(variable.piece, key_of(variable.name, -1), spread));
}

void randomize_parameters(ParameterStore& store, Device& device, float spread) {
  const std::vector<Variable> variables = parameters_of(store, SharedGradients::apart);
  for (std::size_t p = 0; p < variables.size(); ++p) {
    std::vector<float> values =
        normal_values(variables[p].piece, key_of(variables[p].name, -1), spread);
    for (float& value : values) value += store.parameters()[p].spec.initial_mean;
    upload(device, variables[p].value, values);
  }
}

std::vector<float> random_columns(const std::string& name, std::int64_t rows,
                                  std::int64_t num_global, Range local) {
  return normal_values({.num_rows = rows,
                        .num_cols = local.size(),
                        .first_element = local.begin,
                        .row_stride = num_global},
                       key_of(name, -1), 1.0F);
}

double weighted_sum(Device& device, ConstTensorView out, const std::vector<float>& weights) {
  const std::vector<float> values = from_device(device, out);
  EXPECT_EQ(values.size(), weights.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(weights[i]);
  }
  return sum;
}

void expect_gradients_of_differences(const GradientCheck& check) {
  check.compute_gradients();
  std::vector<std::vector<float>> gradients;  // the loss may overwrite them
  for (const Variable& variable : check.variables) {
    gradients.push_back(from_device(check.device, variable.gradient));
  }
  for (std::size_t v = 0; v < check.variables.size(); ++v) {
    const Variable& variable = check.variables[v];
    for (int number = 0; number < kNumDirections; ++number) {
      const std::vector<float> direction =
          normal_values(variable.piece, key_of(variable.name, number), 1.0F);
      double along = 0.0;
      double squares = 0.0;
      for (auto i = static_cast<std::size_t>(variable.counted_begin);
           i < static_cast<std::size_t>(variable.counted_end); ++i) {
        const auto slope = static_cast<double>(gradients[v][i]);
        along += slope * static_cast<double>(direction[i]);
        squares += slope * slope;
      }
      along = add_over_ranks(along);
      // The size of a slope along a direction whose elements have variance 1.
      const double size = std::sqrt(add_over_ranks(squares));
      const double fine = difference(check, variable, direction, check.step);
      const double coarse = difference(check, variable, direction, 2.0 * check.step);
      EXPECT_NEAR((4.0 * fine - coarse) / 3.0, along, check.tolerance * size)
          << variable.name << ", direction " << number << ", relative difference "
          << std::abs((4.0 * fine - coarse) / 3.0 - along) / size;
      EXPECT_GT(size, 0.0) << variable.name << " has no gradient";
    }
  }
}

}  // namespace redspine::testing
