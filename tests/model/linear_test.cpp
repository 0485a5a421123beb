#include "model/linear.h"

#include <gtest/gtest.h>

#include "tests/model/gradient_check.h"
#include "tests/support/random_tensor.h"

namespace redspine::testing {
namespace {

constexpr std::int64_t kRows = 5;

Range share(std::int64_t count) { return partition(count, world().size(), world().rank()); }

// out = x W^T + b by definition, in f64, from whole tensors.
std::vector<double> product(const std::vector<float>& x, const std::vector<float>& weight,
                            const std::vector<float>& bias, std::int64_t in) {
  const std::int64_t out = std::ssize(bias);
  std::vector<double> result;
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < in; ++i) {
        sum += static_cast<double>(x[static_cast<std::size_t>(n * in + i)]) *
               static_cast<double>(weight[static_cast<std::size_t>(o * in + i)]);
      }
      result.push_back(sum);
    }
  }
  return result;
}

class ColumnCase : public Bench {
 public:
  static constexpr std::int64_t kIn = 7;
  static constexpr std::int64_t kFirst = 11;  // uneven over any number of ranks
  static constexpr std::int64_t kSecond = 6;

  explicit ColumnCase(Bias bias)
      : linear(execution(), store.begin_bucket(),
               column_linear("both",
                             {{.name = "first",
                               .num_global = kFirst,
                               .local = share(kFirst),
                               .owned = share(kFirst)},
                              {.name = "second",
                               .num_global = kSecond,
                               .local = share(kSecond),
                               .owned = share(kSecond)}},
                             kIn, bias, {})) {
    store.allocate(*device);
    x = Tensor(*device, DType::f32, {kRows, kIn});
    dx = Tensor(*device, DType::f32, {kRows, kIn});
    const std::int64_t num_local = share(kFirst).size() + share(kSecond).size();
    out = Tensor(*device, DType::f32, {kRows, num_local});
    randomize_parameters(store, *device, 0.5F);
    randomize(replicated_input("x", x, dx), *device, 1.0F);
    const auto first = random_columns("dout1", kRows, kFirst, share(kFirst));
    const auto second = random_columns("dout2", kRows, kSecond, share(kSecond));
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto append = [&](const std::vector<float>& from) {
        const std::int64_t cols = std::ssize(from) / kRows;
        dout.insert(dout.end(), from.begin() + row * cols, from.begin() + (row + 1) * cols);
      };
      append(first);
      append(second);
    }
  }

  ColumnLinear linear;
  Tensor x;
  Tensor dx;
  Tensor out;
  std::vector<float> dout;
};

void expect_column_gradients(Bias bias) {
  ColumnCase layer(bias);
  Device& device = *layer.device;
  std::vector<Variable> variables = parameters_of(layer.store, SharedGradients::apart);
  variables.push_back(replicated_input("x", layer.x, layer.dx));
  expect_gradients_of_differences(
      {.device = device,
       .variables = variables,
       .loss =
           [&] {
             layer.linear.forward(layer.out, layer.x);
             return world().all_reduce(weighted_sum(device, layer.out, layer.dout), ReduceOp::sum);
           },
       .compute_gradients =
           [&] {
             layer.linear.backward(layer.dx, to_device(device, layer.dout, layer.out.shape()),
                                   layer.x);
           }});
}

TEST(ColumnLinear, GradientsAreThoseOfDifferences) { expect_column_gradients(Bias::yes); }
TEST(ColumnLinear, GradientsWithoutABiasAreThoseOfDifferences) {
  expect_column_gradients(Bias::no);
}

TEST(ColumnLinear, ComputesItsShareOfTheProduct) {
  ColumnCase layer(Bias::yes);
  layer.linear.forward(layer.out, layer.x);
  const std::vector<float> out = from_device(*layer.device, layer.out);
  const std::vector<float> x = from_device(*layer.device, layer.x);
  // A rank's rows of weights and biases make its columns of the output, first part then second.
  std::vector<float> weight;
  std::vector<float> bias;
  for (const std::size_t part : {0U, 1U}) {
    const auto rows = from_device(*layer.device, layer.store.parameters()[part].value);
    weight.insert(weight.end(), rows.begin(), rows.end());
    const auto elements = from_device(*layer.device, layer.store.parameters()[part + 2].value);
    bias.insert(bias.end(), elements.begin(), elements.end());
  }
  const std::vector<double> expected = product(x, weight, bias, ColumnCase::kIn);
  EXPECT_EQ(out.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-5);
}

class RowCase : public Bench {
 public:
  static constexpr std::int64_t kIn = 11;
  static constexpr std::int64_t kOut = 6;

  explicit RowCase(Bias bias)
      : linear(execution(), store.begin_bucket(),
               row_linear("row",
                          {.name = "row",
                           .out_features = kOut,
                           .in_features = kIn,
                           .local_in = share(kIn),
                           .initial_std = 0.02F},
                          bias, {.rank = world().rank()})) {
    store.allocate(*device);
    x = Tensor(*device, DType::f32, {kRows, share(kIn).size()});
    dx = Tensor(*device, DType::f32, {kRows, share(kIn).size()});
    out = Tensor(*device, DType::f32, {kRows, kOut});
    randomize_parameters(store, *device, 0.5F);
    randomize(input(), *device, 1.0F);
    dout = random_columns("dout", kRows, kOut, {0, kOut});
  }

  Variable input() { return input_columns("x", x, dx, kIn, share(kIn)); }

  RowLinear linear;
  Tensor x;
  Tensor dx;
  Tensor out;
  std::vector<float> dout;
};

void expect_row_gradients(Bias bias) {
  RowCase layer(bias);
  Device& device = *layer.device;
  std::vector<Variable> variables = parameters_of(layer.store, SharedGradients::apart);
  variables.push_back(layer.input());
  expect_gradients_of_differences(
      {.device = device,
       .variables = variables,
       .loss =
           [&] {
             layer.linear.forward(layer.out, layer.x);
             return weighted_sum(device, layer.out, layer.dout);
           },
       .compute_gradients =
           [&] {
             layer.linear.backward(layer.dx, to_device(device, layer.dout, layer.out.shape()),
                                   layer.x);
           }});
}

TEST(RowLinear, GradientsAreThoseOfDifferences) { expect_row_gradients(Bias::yes); }
TEST(RowLinear, GradientsWithoutABiasAreThoseOfDifferences) { expect_row_gradients(Bias::no); }

TEST(RowLinear, AddsTheBiasOnceToTheSumOverRanks) {
  RowCase layer(Bias::yes);
  layer.linear.forward(layer.out, layer.x);
  const std::vector<float> out = from_device(*layer.device, layer.out);
  const std::vector<float> x = random_columns("x", kRows, RowCase::kIn, {0, RowCase::kIn});
  const std::vector<float> weight =
      random_columns("row.weight", RowCase::kOut, RowCase::kIn, {0, RowCase::kIn});
  const std::vector<float> bias = random_columns("row.bias", RowCase::kOut, 1, {0, 1});
  const std::vector<double> twice = product(x, weight, bias, RowCase::kIn);  // spread 1, not 0.5
  EXPECT_EQ(out.size(), twice.size());
  for (std::size_t i = 0; i < twice.size(); ++i) EXPECT_NEAR(out[i], 0.5 * twice[i], 1e-5);
}

}  // namespace
}  // namespace redspine::testing
