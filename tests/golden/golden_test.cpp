// Tiny models against transformers and torch.optim.AdamW: logits, loss, the gradient of every
// parameter, and ten training steps, on as many tensor ranks as the test is started with.
//
// Nothing is gathered: each rank compares its share with the same part of the reference, and a
// difference is relative to the norm of the whole reference tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/gpt.h"
#include "parallel/mesh/gradient_norm.h"
#include "tests/golden/golden_case.h"
#include "tests/support/mpi_main.h"
#include "tests/support/test_device.h"
#include "trainer/optimizer/optimizer.h"

namespace redspine::testing {
namespace {

constexpr double kTolerance = 1e-5;

double norm_of(std::span<const float> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// The columns (or rows) of a whole row-major matrix that lie in `local`; a vector is one column.
std::vector<float> part_of(const StoredTensor& whole, int dim, Range local) {
  const std::int64_t num_rows = whole.shape.front();
  const auto num_cols = static_cast<std::int64_t>(whole.values.size()) / num_rows;
  const Range rows = dim == 0 ? local : Range{0, num_rows};
  const Range cols = dim == 1 ? local : Range{0, num_cols};
  std::vector<float> part;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const auto row = whole.values.begin() + r * num_cols;
    part.insert(part.end(), row + cols.begin, row + cols.end);
  }
  return part;
}

/// A model with a golden case's weights; every rank of the world is a tensor rank.
class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  Golden()
      : golden_(read_golden_case(GetParam())),
        device_(make_test_device()),
        mesh_(world(), MeshShape::of(world().size(), world().size()), *device_),
        gpt_(golden_.model, {golden_.batch_size, golden_.sequence_length}, 1, {*device_, mesh_}),
        reducer_(*device_, mesh_, gpt_.parameters().buckets(), 1),
        tokens_BT_(*device_, DType::i32, {golden_.batch_size, golden_.sequence_length}),
        targets_BT_(*device_, DType::i32, {golden_.batch_size, golden_.sequence_length}),
        samples_B_(*device_, DType::i64, {golden_.batch_size}) {
    for (const Parameter& parameter : gpt_.parameters().parameters()) {
      const std::vector<float> values = reference("initial", parameter);
      device_->upload(flat(parameter.value), host_view(std::span(values)));
    }
  }

  static TensorView flat(TensorView view) { return view.reshape({view.count()}); }

  std::int64_t num_tokens() const { return golden_.batch_size * golden_.sequence_length; }

  MicroBatch batch_of_step(std::size_t step) {
    device_->upload(flat(tokens_BT_), host_view(golden_.tokens(step)));
    device_->upload(flat(targets_BT_), host_view(golden_.targets(step)));
    return {.tokens_BT = tokens_BT_, .targets_BT = targets_BT_, .samples_B = samples_B_};
  }

  /// Gradients of the mean loss of a step's batch; returns that loss.
  double compute_gradients(std::size_t step) {
    gpt_.parameters().zero_gradients();
    const auto scale = static_cast<float>(1.0 / static_cast<double>(num_tokens()));
    gpt_.forward_backward(batch_of_step(step), scale, reducer_);
    reducer_.finish();
    return gpt_.take_loss_sum().total() / static_cast<double>(num_tokens());
  }

  std::vector<float> download(ConstTensorView view) {
    std::vector<float> values(static_cast<std::size_t>(view.count()));
    device_->download(host_view(std::span(values)), view.reshape({view.count()}));
    return values;
  }

  /// This rank's share of a reference tensor.
  std::vector<float> reference(std::string_view what, const Parameter& parameter) const {
    const ParameterSpec& spec = parameter.spec;
    return part_of(golden_.parameter(what, spec.name), spec.sharded_dim, spec.local);
  }

  /// The norm of the difference between this rank's share and the reference's.
  double difference(ConstTensorView actual, std::span<const float> expected) {
    std::vector<float> values = download(actual);
    EXPECT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= expected[i];
    return norm_of(values);
  }

  /// Softmax does not see a key bias where positions do not turn it: its true gradient is zero, all
  /// that is computed is rounding, and AdamW makes whole steps of it.
  bool has_no_true_gradient(const Parameter& parameter) const {
    return golden_.model.position == Position::learned &&
           parameter.spec.name.ends_with("attention.key.bias");
  }

  GoldenCase golden_;
  std::unique_ptr<Device> device_;
  ProcessMesh mesh_;
  Gpt gpt_;
  GradientReducer reducer_;
  Tensor tokens_BT_;
  Tensor targets_BT_;
  Tensor samples_B_;
};

TEST_P(Golden, HasTheParametersOfTransformers) {
  std::vector<std::string> names;
  for (const Parameter& parameter : gpt_.parameters().parameters()) {
    names.push_back(parameter.spec.name);
    const auto& shape = golden_.parameter("initial", parameter.spec.name).shape;
    Shape expected{shape.front()};
    if (shape.size() == 2) expected = {shape[0], shape[1]};
    EXPECT_EQ(parameter.spec.global_shape.to_string(), expected.to_string()) << parameter.spec.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, golden_.parameter_names());
}

TEST_P(Golden, LogitsAgreeWithTransformers) {
  StoredTensor whole = golden_.tensors.at("logits");
  whole.shape = {num_tokens(), golden_.model.vocab_size};
  const Range columns = gpt_.logits_columns();
  Tensor logits_Nv(*device_, DType::f32, {num_tokens(), columns.size()});
  gpt_.logits(logits_Nv, batch_of_step(0));
  EXPECT_LT(difference(logits_Nv, part_of(whole, 1, columns)), kTolerance * norm_of(whole.values));
}

TEST_P(Golden, LossAndGradientsAgreeWithTransformers) {
  EXPECT_NEAR(compute_gradients(0) / golden_.steps.front().loss, 1.0, kTolerance);
  for (const Parameter& parameter : gpt_.parameters().parameters()) {
    const std::string& name = parameter.spec.name;
    // What a key bias is measured against: the gradient of the keys that it is added to.
    const std::string yardstick =
        has_no_true_gradient(parameter) ? name.substr(0, name.rfind('.')) + ".weight" : name;
    EXPECT_LT(difference(parameter.gradient, reference("gradient", parameter)),
              kTolerance * norm_of(golden_.parameter("gradient", yardstick).values))
        << name;
  }
}

TEST_P(Golden, TenStepsAgreeWithTorchAdamW) {
  Optimizer optimizer(golden_.optimizer, *device_, gpt_.parameters(),
                      held_parts(gpt_.parameters()));
  const std::vector<ConstTensorView> owned = gpt_.parameters().owned_gradients();
  for (std::size_t step = 0; step < golden_.steps.size(); ++step) {
    const GoldenStep& expected = golden_.steps[step];
    const double loss = compute_gradients(step);
    const double norm = std::sqrt(
        mesh_.group(Axis::tensor).all_reduce(sum_of_squares(*device_, owned), ReduceOp::sum));
    EXPECT_NEAR(loss / expected.loss, 1.0, kTolerance) << "step " << step + 1;
    EXPECT_NEAR(norm / expected.gradient_norm, 1.0, kTolerance) << "step " << step + 1;
    optimizer.update(expected.learning_rate,
                     clip_factor(norm, golden_.optimizer.max_gradient_norm));
  }
  for (const Parameter& parameter : gpt_.parameters().parameters()) {
    if (has_no_true_gradient(parameter)) continue;
    const std::string& name = parameter.spec.name;
    EXPECT_LT(difference(parameter.value, reference("final", parameter)),
              kTolerance * norm_of(golden_.parameter("final", name).values))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(golden_case_names()),
                         [](const auto& golden_case) { return golden_case.param; });

}  // namespace
}  // namespace redspine::testing
