// The optimizer's update, an operation of tensor/kernels.h.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/digest.h"
#include "tensor/view.h"

namespace redspine {

/// The elements [begin, begin + count) of the buffers that AdamW is given, their decay, and where
/// they lie in their tensor.
struct AdamWPart {
  std::int64_t begin;
  std::int64_t count;
  double weight_decay;
  DigestPlace place = {};  // read where there are digests
};

/// AdamW with decoupled decay (Loshchilov and Hutter, arXiv 1711.05101), epsilon outside the root,
/// as torch.optim.AdamW. With g = gradient * gradient_scale:
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
/// p = p (1 - learning_rate * weight_decay)
///     - learning_rate / correction1 * m / (sqrt(v / correction2) + epsilon).
/// Elements that lie in none of the parts are left alone.
struct AdamW {
  TensorView parameter;   // [n], in place
  TensorView exp_avg;     // [n], m, in place
  TensorView exp_avg_sq;  // [n], v, in place
  ConstTensorView gradient;
  TensorView working = {};  // [n], p rounded to bf16, written; or empty
  TensorView digests = {};  // [parts, 2], i64, low and high of the new p's, written; or empty
  std::span<const AdamWPart> parts;
  double gradient_scale;
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double correction1;  // 1 - beta1^t
  double correction2;  // 1 - beta2^t
};

}  // namespace redspine
