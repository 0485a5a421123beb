#include "tests/tensor/attention_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>

#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {

std::vector<float> normal_values(std::int64_t count, std::uint32_t seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

AttentionInputs random_inputs(const AttentionCase& c, float deviation) {
  return {normal_values(c.batch() * c.length * c.qkv_size(), 1, deviation),
          normal_values(c.batch() * c.length * c.context_size(), 2)};
}

AttentionOutputs run_attention(const AttentionCase& c, const AttentionInputs& inputs,
                               int num_threads) {
  const auto device = make_cpu_device(num_threads);
  const std::int64_t batch = c.batch();
  Tensor qkv(*device, DType::f32, {batch, c.length, c.qkv_size()});
  Tensor context(*device, DType::f32, {batch, c.length, c.context_size()});
  Tensor log_sum_exp(*device, DType::f32, {batch, c.heads.num_heads, c.length});
  Tensor dcontext(*device, DType::f32, {batch, c.length, c.context_size()});
  Tensor dqkv(*device, DType::f32, {batch, c.length, c.qkv_size()});
  Tensor samples(*device, DType::i64, {batch});
  const auto fill = [&](Tensor& tensor, float value) {
    const std::vector<float> values(static_cast<std::size_t>(tensor.count()), value);
    device->upload(tensor, host_view(std::span(values)));
  };
  const auto values_of = [&](const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.count()));
    device->download(host_view(std::span(values)), tensor);
    return values;
  };
  device->upload(samples, host_view(std::span(c.samples)));
  device->upload(qkv, host_view(std::span(inputs.qkv)));
  device->upload(dcontext, host_view(std::span(inputs.dcontext)));
  for (Tensor* output : {&context, &log_sum_exp, &dqkv}) {
    fill(*output, std::numeric_limits<float>::quiet_NaN());
  }

  const DropoutKey dropout{c.key, c.probability, samples};
  ops::run(*device, Attention{.context = context,
                              .log_sum_exp_BhT = log_sum_exp,
                              .qkv = qkv,
                              .heads = c.heads,
                              .dropout = dropout});
  ops::run(*device, AttentionBackward{.dqkv = dqkv,
                                      .dcontext = dcontext,
                                      .qkv = qkv,
                                      .context = context,
                                      .log_sum_exp_BhT = log_sum_exp,
                                      .heads = c.heads,
                                      .dropout = dropout});
  return {values_of(context), values_of(log_sum_exp), values_of(dqkv)};
}

double scaled_error(const std::vector<float>& values, const std::vector<double>& expected) {
  EXPECT_EQ(values.size(), expected.size());
  double error = 0.0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(values[i] - expected[i]);
    if (std::isnan(difference)) return difference;
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

void expect_agreement(const AttentionCase& c) {
  SCOPED_TRACE("B " + std::to_string(c.batch()) + ", T " + std::to_string(c.length) + ", h " +
               std::to_string(c.heads.num_heads) + ", g " + std::to_string(c.heads.num_kv_heads) +
               ", K " + std::to_string(c.heads.head_size) + ", queries per kv " +
               std::to_string(c.heads.queries_per_kv) + ", first " +
               std::to_string(c.heads.first_query) + ", p " + std::to_string(c.probability));
  const AttentionInputs inputs = random_inputs(c);
  const AttentionOutputs outputs = run_attention(c, inputs);
  const AttentionResult expected = reference_attention(c, widened(inputs.qkv));
  EXPECT_LE(scaled_error(outputs.context, expected.context), 5e-6);
  EXPECT_LE(scaled_error(outputs.log_sum_exp, expected.log_sum_exp), 2e-6);
  EXPECT_LE(scaled_error(outputs.dqkv, reference_attention_gradient(c, widened(inputs.qkv),
                                                                    widened(inputs.dcontext))),
            1e-5);
}

}  // namespace redspine
