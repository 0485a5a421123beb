// The attention kernels of the CPU on one problem, forward and backward, and their comparison with
// the reference.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/tensor/attention_reference.h"

namespace redspine {

struct AttentionOutputs {
  std::vector<float> context;
  std::vector<float> log_sum_exp;
  std::vector<float> dqkv;

  bool operator==(const AttentionOutputs&) const = default;
};

struct AttentionInputs {
  std::vector<float> qkv;
  std::vector<float> dcontext;
};

std::vector<float> normal_values(std::int64_t count, std::uint32_t seed, float deviation = 1.0F);
std::vector<double> widened(const std::vector<float>& values);
AttentionInputs random_inputs(const AttentionCase& c, float deviation = 1.0F);

/// Outputs start as NaN, since they are written, not added to.
AttentionOutputs run_attention(const AttentionCase& c, const AttentionInputs& inputs,
                               int num_threads = 2);

/// Largest difference, relative to the largest value there is.
double scaled_error(const std::vector<float>& values, const std::vector<double>& expected);

/// Of random inputs: outputs and gradients within the rounding of fp32.
void expect_agreement(const AttentionCase& c);

}  // namespace redspine
