#include "launch/bench/gemm.h"

#include <fmt/format.h>

#include "launch/bench/rounds.h"
#include "model/lm_head.h"
#include "parallel/partition.h"
#include "tensor/blas_library.h"
#include "tensor/ops.h"
#include "tensor/tensor.h"

namespace redspine {
namespace {

constexpr int kNumRounds = 5;

struct Layer {
  const char* name;
  std::int64_t in_features;
  std::int64_t out_features;
};

void add_layer(std::vector<Product>& products, const Layer& layer, std::int64_t rows,
               double count) {
  constexpr std::pair<ProductKind, const char*> kKinds[] = {
      {ProductKind::forward, "forward"},
      {ProductKind::input_gradient, "input gradient"},
      {ProductKind::weight_gradient, "weight gradient"}};
  for (const auto& [kind, name] : kKinds) {
    products.push_back({.name = fmt::format("{} {}", layer.name, name),
                        .kind = kind,
                        .rows = rows,
                        .in_features = layer.in_features,
                        .out_features = layer.out_features,
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

std::vector<Product> products_of(const Config& config, const Device& device, int tensor_size,
                                 int tensor_rank) {
  const ModelConfig& model = config.model;
  const std::int64_t rows = config.batch.micro_batch_size * config.batch.sequence_length;
  const HeadPartition heads =
      partition_heads(model.num_heads, model.num_kv_heads, tensor_size, tensor_rank);
  const std::int64_t query = heads.query_heads.size() * model.head_size();
  const std::int64_t qkv = query + 2 * heads.kv_heads.size() * model.head_size();
  const std::int64_t ffn = partition(model.ffn_size, tensor_size, tensor_rank).size();
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * ffn : ffn;
  const std::int64_t vocabulary = partition(model.vocab_size, tensor_size, tensor_rank).size();
  const std::int64_t chunk_rows = head_chunk_rows(device, model.vocab_size, rows);
  const auto num_layers = static_cast<double>(model.num_layers);
  std::vector<Product> products;
  add_layer(products, {"qkv", model.hidden_size, qkv}, rows, num_layers);
  add_layer(products, {"attention output", query, model.hidden_size}, rows, num_layers);
  add_layer(products, {"up", model.hidden_size, up}, rows, num_layers);
  add_layer(products, {"down", ffn, model.hidden_size}, rows, num_layers);
  add_layer(products, {"head", model.hidden_size, vocabulary}, chunk_rows,
            static_cast<double>(rows) / static_cast<double>(chunk_rows));
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
  const Tensor x(device, dtype, {product.rows, product.in_features});
  const Tensor y(device, dtype, {product.rows, product.out_features});
  const Tensor weight(device, is_weight ? DType::f32 : dtype,
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
