// Gradients of a layer against finite differences, on all ranks as one tensor axis.
//
// A layer's outputs are f32, so its loss moves in steps of about 1e-7 of its size and a difference
// over 2h has an error of about 1e-7 / h. A large h keeps that small, and Richardson's
// extrapolation from h and 2h removes the error of order h^2 that a large h brings. What remains
// was 4e-4 of the gradient at most, and mostly below 1e-4: kTolerance allows a little more, and any
// wrong term is far above it. (The kernels beneath are tested against f64, element by element.)
//
// Each variable is moved along random directions, not element by element: a problem in any of its
// elements shows in every one of them, and a hundred thousand elements cost four losses. A
// direction is a function of an element's global place, so that all ranks move the same whole.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/execution_context.h"
#include "model/parameters.h"
#include "tensor/random_normal.h"
#include "tests/support/mpi_main.h"
#include "tests/support/test_device.h"

namespace redspine::testing {

constexpr double kTolerance = 1e-3;

/// Where a layer is tested: a device, and every rank of the world on the tensor axis.
struct Bench {
  Bench()
      : device(make_test_device()),
        mesh(world(), MeshShape::of(world().size(), world().size()), *device) {}
  ExecutionContext execution() { return {*device, mesh}; }

  std::unique_ptr<Device> device;
  ProcessMesh mesh;
  ParameterStore store;
};

/// Something that a loss depends on, as this rank holds it.
struct Variable {
  std::string name;
  TensorView value;
  TensorView gradient;
  MatrixPiece piece;           // where `value` lies in the whole
  std::int64_t counted_begin;  // the elements of `gradient` which this rank adds to a sum over all
  std::int64_t counted_end;
};

/// An input that every rank holds whole.
Variable replicated_input(const std::string& name, TensorView value, TensorView gradient);
/// The columns `local` of an input [rows, num_global].
Variable input_columns(const std::string& name, TensorView value, TensorView gradient,
                       std::int64_t num_global, Range local);
/// Every parameter; `gradients` says whether summands of shared rows are still apart.
enum class SharedGradients { apart, added_up };
std::vector<Variable> parameters_of(const ParameterStore& store, SharedGradients gradients);

/// Normal values, of standard deviation `spread`, as a function of their place in the whole.
void randomize(const Variable& variable, Device& device, float spread);
/// The same for every parameter, around 1 for weights.
void randomize_parameters(ParameterStore& store, Device& device, float spread);
/// Host values of the columns `local` of a random [rows, num_global], the same on any ranks.
std::vector<float> random_columns(const std::string& name, std::int64_t rows,
                                  std::int64_t num_global, Range local);

/// sum of weights * out in f64, of this rank.
double weighted_sum(Device& device, ConstTensorView out, const std::vector<float>& weights);

struct GradientCheck {
  Device& device;
  std::vector<Variable> variables;
  std::function<double()> loss;             // the same on every rank
  std::function<void()> compute_gradients;  // from zero, at the present values
  double tolerance = kTolerance;
  double step = 1e-2;
};
/// Compares each variable's gradient with differences of the loss, along three directions.
void expect_gradients_of_differences(const GradientCheck& check);

}  // namespace redspine::testing
