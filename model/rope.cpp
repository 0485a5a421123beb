#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/portable_math.h"

namespace redspine {
namespace {

using std::numbers::pi;

// YaRN, section 3.2: pairs that turn often within the original length keep their frequency, pairs
// that turn seldom are interpolated, with a linear ramp between.
void apply_yarn(std::vector<double>& frequencies, const RopeConfig& config) {
  const double length = static_cast<double>(config.original_length);
  const double half = static_cast<double>(frequencies.size());
  // The (fractional) pair that makes `turns` turns within the original length.
  const auto pair_with_turns = [&](double turns) {
    return half * portable::log(length / (turns * 2.0 * pi)) / portable::log(config.theta);
  };
  const double first = std::max(std::floor(pair_with_turns(config.beta_fast)), 0.0);
  const double last = std::min(std::ceil(pair_with_turns(config.beta_slow)), 2.0 * half - 1.0);
  const double width = first == last ? 0.001 : last - first;  // a ramp of no width is a step
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - first) / width, 0.0, 1.0);
    frequencies[i] *= (1.0 - ramp) + ramp / config.factor;
  }
}

// Llama 3.1: short wavelengths stay, long ones are divided by the factor, and those between move
// smoothly from one to the other.
void apply_llama3(std::vector<double>& frequencies, const RopeConfig& config) {
  const double length = static_cast<double>(config.original_length);
  for (double& frequency : frequencies) {
    const double turns = length * frequency / (2.0 * pi);
    const double kept = std::clamp(
        (turns - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor), 0.0,
        1.0);
    frequency *= kept + (1.0 - kept) / config.factor;
  }
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t head_size) {
  const double size = static_cast<double>(head_size);
  double theta = config.theta;
  if (config.scaling == RopeScaling::ntk)
    theta *= portable::pow(config.factor, size / (size - 2.0));
  RopeFrequencies rope{.frequencies = std::vector<double>(static_cast<std::size_t>(head_size / 2)),
                       .amplitude = 1.0};
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    rope.frequencies[i] = portable::pow(theta, -2.0 * static_cast<double>(i) / size);
  }
  switch (config.scaling) {
    case RopeScaling::none:
    case RopeScaling::ntk:
      break;
    case RopeScaling::linear:
      for (double& frequency : rope.frequencies) frequency /= config.factor;
      break;
    case RopeScaling::yarn:
      apply_yarn(rope.frequencies, config);
      rope.amplitude = config.attention_factor.value_or(0.1 * portable::log(config.factor) + 1.0);
      break;
    case RopeScaling::llama3:
      apply_llama3(rope.frequencies, config);
      break;
  }
  return rope;
}

RopeTable make_rope_table(Device& device, const ModelConfig& config, std::int64_t length) {
  const RopeFrequencies rope = rope_frequencies(config.rope, config.head_size());
  const auto half = static_cast<std::int64_t>(rope.frequencies.size());
  std::vector<float> cosines;
  std::vector<float> sines;
  for (std::int64_t t = 0; t < length; ++t) {
    for (const double frequency : rope.frequencies) {
      const double angle = static_cast<double>(t) * frequency;
      cosines.push_back(static_cast<float>(rope.amplitude * portable::cos(angle)));
      sines.push_back(static_cast<float>(rope.amplitude * portable::sin(angle)));
    }
  }
  RopeTable table{.cos = Tensor(device, DType::f32, {length, half}),
                  .sin = Tensor(device, DType::f32, {length, half})};
  const Shape flat{length * half};
  device.upload(table.cos.view().reshape(flat), host_view(std::span<const float>(cosines)));
  device.upload(table.sin.view().reshape(flat), host_view(std::span<const float>(sines)));
  return table;
}

}  // namespace redspine
