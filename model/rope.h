// Rotary position tables with the context extensions that `transformers` knows.
#pragma once

#include <vector>

#include "model/config.h"
#include "tensor/tensor.h"

namespace redspine {

/// What a scaling makes of theta: the angle of pair i at position t is t * frequencies[i], and both
/// cos and sin are multiplied by `amplitude`.
struct RopeFrequencies {
  std::vector<double> frequencies;  // [head_size / 2], radians per token
  double amplitude;
};

/// Pure. none: theta^(-2i/K) (arXiv 2104.09864); linear: positions divided by `factor`
/// (arXiv 2306.15595); ntk: theta * factor^(K/(K-2)); yarn: arXiv 2309.00071, with its attention
/// factor 0.1 ln(factor) + 1; llama3: the smoothed frequency bands of Llama 3.1.
RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t head_size);

/// cos and sin [length, head_size / 2] on the device. Angles are computed in f64, then rounded.
struct RopeTable {
  Tensor cos;
  Tensor sin;
};
RopeTable make_rope_table(Device& device, const ModelConfig& config, std::int64_t length);

}  // namespace redspine
