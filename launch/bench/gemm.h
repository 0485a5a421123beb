// The matrix products of a training step, and how fast this rank computes each of them: by our
// kernels and, on a CPU, by the BLAS library. Local.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "tensor/device.h"
#include "trainer/config.h"

namespace redspine {

enum class ProductKind { forward, input_gradient, weight_gradient };

struct Product {
  std::string name;  // "up forward"
  ProductKind kind;
  std::int64_t rows;          // tokens
  std::int64_t in_features;   // of the layer, on this rank
  std::int64_t out_features;  // of the layer, on this rank
  double count;               // a micro-batch

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(in_features) *
           static_cast<double>(out_features);
  }
};

struct ProductRate {
  Product product;
  double flops_per_second;          // the best of the rounds
  double library_flops_per_second;  // the same; 0 where there is no library

  double best() const { return std::max(flops_per_second, library_flops_per_second); }
};

/// Every product of a micro-batch with parameters, as `rank` of the tensor axis computes it.
std::vector<Product> products_of(const Config& config, const Device& device, TensorRank rank);

/// Rows of square matrices large enough for the device to be at its best.
std::int64_t square_size(const Device& device);
Product square_product(std::int64_t size);

ProductRate measure(const Product& product, Device& device, DType dtype);

}  // namespace redspine
