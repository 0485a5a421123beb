// What an operation of tensor/kernels.h has to do, whatever computes it: arithmetic, and bytes that
// go to memory or come from it. Each operation has its own function here, so one that is added does
// not compile without.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/kernels.h"

namespace redspine {

/// What limits an operation, and so in which unit its rate is known.
enum class CostClass { product, attention, memory };

struct OperationCost {
  std::string_view operation;  // its name in tensor/kernels.h; of copies "copy", of fills "fill"
  CostClass cost_class;
  DType dtype;             // of activations
  std::int64_t rows = 0;   // of a product's result; of attention: B h
  std::int64_t inner = 0;  // what a product adds up over; of attention: T
  std::int64_t cols = 0;   // of a product's result; of attention: K
  double flops = 0.0;      // of products and attention, whose causal half alone counts
  double bytes = 0.0;      // read and written, once each
};

#define REDSPINE_COST(Operation) OperationCost cost_of(const Operation& op);
REDSPINE_FOR_EACH_OPERATION(REDSPINE_COST)
#undef REDSPINE_COST

/// A copy or a fill of so many bytes.
OperationCost cost_of_copy(std::size_t bytes);
OperationCost cost_of_fill(std::size_t bytes);

}  // namespace redspine
