#include "launch/bench/gemm.h"

#include <fmt/format.h>

#include "launch/bench/rounds.h"
#include "model/lm_head.h"
#include "model/model_spec.h"
#include "tensor/blas_library.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

constexpr int kNumRounds = 5;

void add_products(std::vector<Product>& products, const LinearSpec& layer, std::int64_t rows,
                  double count) {
  constexpr std::pair<ProductKind, const char*> kKinds[] = {
      {ProductKind::forward, "forward"},
      {ProductKind::input_gradient, "input gradient"},
      {ProductKind::weight_gradient, "weight gradient"}};
  for (const auto& [kind, name] : kKinds) {
    products.push_back({.name = fmt::format("{} {}", layer.product, name),
                        .kind = kind,
                        .rows = rows,
                        .in_features = layer.in_features(),
                        .out_features = layer.out_features(),
                        .count = count});
  }
}

// Of the best of some rounds.
template <class Run>
double flops_per_second(const Product& product, Device& device, const Run& run) {
  return product.flops() / seconds_of_rounds(device, kNumRounds, run).front();
}

template <class Op>
ProductRate measure_both(const Product& product, Device& device, const Op& op) {
  ProductRate rate{
      .product = product,
      .flops_per_second = flops_per_second(product, device, [&] { ops::run(device, op); }),
      .library_flops_per_second = 0.0};
  if (device.kind() == DeviceKind::cpu && has_blas_library()) {
    rate.library_flops_per_second =
        flops_per_second(product, device, [&] { run_by_blas_library(op); });
  }
  return rate;
}

}  // namespace

std::vector<Product> products_of(const Config& config, const Device& device, TensorRank rank) {
  const ModelSpec model = model_spec(config.model, rank);
  const std::int64_t rows = config.batch.micro_batch_size * config.batch.sequence_length;
  const std::int64_t chunk_rows = head_chunk_rows(device, config.model.vocab_size, rows);
  std::vector<Product> products;
  for (const LinearSpec& layer : model.block.products) {
    add_products(products, layer, rows, static_cast<double>(model.num_blocks));
  }
  for (const LinearSpec& layer : model.head.products) {
    add_products(products, layer, chunk_rows,
                 static_cast<double>(rows) / static_cast<double>(chunk_rows));
  }
  return products;
}

std::int64_t square_size(const Device& device) {
  return device.kind() == DeviceKind::cuda ? 8192 : 1536;
}

Product square_product(std::int64_t size) {
  return {.name = "square",
          .kind = ProductKind::forward,
          .rows = size,
          .in_features = size,
          .out_features = size,
          .count = 0};
}

ProductRate measure(const Product& product, Device& device, DType dtype) {
  const bool is_weight = product.kind == ProductKind::weight_gradient;
  Tensor x(device, dtype, {product.rows, product.in_features});
  Tensor y(device, dtype, {product.rows, product.out_features});
  Tensor weight(device, is_weight ? DType::f32 : dtype,
                {product.out_features, product.in_features});
  switch (product.kind) {
    case ProductKind::forward:
      return measure_both(product, device,
                          Matmul{.out = y, .a = x, .b = weight, .transpose_b = Transpose::yes});
    case ProductKind::input_gradient:
      return measure_both(product, device, Matmul{.out = x, .a = y, .b = weight});
    case ProductKind::weight_gradient:
      break;
  }
  return measure_both(product, device,
                      WeightGradient{.dweight = weight, .dbias = {}, .dy = y, .x = x});
}

}  // namespace redspine
