#include "trainer/plan/operation_cost.h"

#include <initializer_list>

namespace redspine {
namespace {

double bytes_of(std::initializer_list<ConstTensorView> views) {
  double bytes = 0.0;
  for (const ConstTensorView& view : views) bytes += static_cast<double>(view.bytes());
  return bytes;
}

OperationCost memory_cost(std::string_view operation, ConstTensorView activation,
                          std::initializer_list<ConstTensorView> views) {
  return {.operation = operation,
          .cost_class = CostClass::memory,
          .dtype = activation.dtype(),
          .bytes = bytes_of(views)};
}

struct ProductSize {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
};

OperationCost product_cost(std::string_view operation, DType dtype, ProductSize size,
                           double bytes) {
  return {.operation = operation,
          .cost_class = CostClass::product,
          .dtype = dtype,
          .rows = size.rows,
          .inner = size.inner,
          .cols = size.cols,
          .flops = 2.0 * static_cast<double>(size.rows) * static_cast<double>(size.inner) *
                   static_cast<double>(size.cols),
          .bytes = bytes};
}

// `num_products` of T x T x K for each head, of which the causal mask leaves half.
OperationCost attention_cost(std::string_view operation, ConstTensorView qkv,
                             const HeadLayout& heads, double num_products, double bytes) {
  const std::int64_t batch_heads = qkv.dim(0) * heads.num_heads;
  const std::int64_t length = qkv.dim(1);
  const double scores =
      static_cast<double>(length) * static_cast<double>(length + 1) / 2.0;  // a head's
  return {.operation = operation,
          .cost_class = CostClass::attention,
          .dtype = qkv.dtype(),
          .rows = batch_heads,
          .inner = length,
          .cols = heads.head_size,
          .flops = 2.0 * num_products * static_cast<double>(batch_heads) * scores *
                   static_cast<double>(heads.head_size),
          .bytes = bytes};
}

}  // namespace

OperationCost cost_of(const Matmul& op) {
  const std::string_view name = op.transpose_b == Transpose::yes ? "Matmul" : "MatmulTransposed";
  return product_cost(name, op.a.dtype(), {op.a.rows(), op.a.cols(), op.out.cols()},
                      bytes_of({op.out, op.a, op.b, op.bias}));
}

OperationCost cost_of(const AddBias& op) {
  return memory_cost("AddBias", op.x, {op.x, op.x, op.bias});
}

OperationCost cost_of(const Accumulate& op) {
  return memory_cost("Accumulate", op.x, {op.sum, op.sum, op.x});
}

OperationCost cost_of(const MatmulGelu& op) {
  return product_cost("MatmulGelu", op.a.dtype(), {op.a.rows(), op.a.cols(), op.out.cols()},
                      bytes_of({op.out, op.x, op.a, op.b, op.bias}));
}

OperationCost cost_of(const MatmulGeluBackward& op) {
  return product_cost("MatmulGeluBackward", op.a.dtype(), {op.a.rows(), op.a.cols(), op.dx.cols()},
                      bytes_of({op.dx, op.a, op.b, op.x}));
}

OperationCost cost_of(const WeightGradient& op) {
  const double old = op.update == Update::accumulate ? bytes_of({op.dweight}) : 0.0;
  return product_cost("WeightGradient", op.x.dtype(), {op.dy.cols(), op.dy.rows(), op.x.cols()},
                      old + bytes_of({op.dweight, op.dbias, op.dy, op.x}));
}

OperationCost cost_of(const LayerNorm& op) {
  return memory_cost("LayerNorm", op.x, {op.out, op.x});
}

OperationCost cost_of(const AddLayerNorm& op) {
  return memory_cost("AddLayerNorm", op.out, {op.out, op.sum, op.residual, op.branch});
}

OperationCost cost_of(const LayerNormBackward& op) {
  return memory_cost("LayerNormBackward", op.x, {op.dx, op.dx, op.dout, op.x});
}

OperationCost cost_of(const RmsNorm& op) { return memory_cost("RmsNorm", op.x, {op.out, op.x}); }

OperationCost cost_of(const AddRmsNorm& op) {
  return memory_cost("AddRmsNorm", op.out, {op.out, op.sum, op.residual, op.branch});
}

OperationCost cost_of(const RmsNormBackward& op) {
  return memory_cost("RmsNormBackward", op.x, {op.dx, op.dx, op.dout, op.x});
}

OperationCost cost_of(const Rope& op) { return memory_cost("Rope", op.x, {op.x, op.x}); }

OperationCost cost_of(const Dropout& op) { return memory_cost("Dropout", op.x, {op.out, op.x}); }

OperationCost cost_of(const Attention& op) {
  return attention_cost("Attention", op.qkv, op.heads, 2.0, bytes_of({op.context, op.qkv}));
}

OperationCost cost_of(const AttentionBackward& op) {
  return attention_cost("AttentionBackward", op.qkv, op.heads, 5.0,
                        bytes_of({op.dqkv, op.dcontext, op.qkv, op.context}));
}

OperationCost cost_of(const CopyColumns& op) {
  return memory_cost("CopyColumns", op.x, {op.x, op.x});
}

OperationCost cost_of(const Swiglu& op) {
  return memory_cost("Swiglu", op.out, {op.out, op.gate_up});
}

OperationCost cost_of(const SwigluBackward& op) {
  return memory_cost("SwigluBackward", op.dout, {op.dgate_up, op.dout, op.gate_up});
}

OperationCost cost_of(const Embedding& op) {
  return memory_cost("Embedding", op.out, {op.out, op.out});
}

OperationCost cost_of(const EmbeddingBackward& op) {
  return memory_cost("EmbeddingBackward", op.dout, {op.dout, op.dout, op.dout});
}

OperationCost cost_of(const RowMax& op) { return memory_cost("RowMax", op.logits, {op.logits}); }

OperationCost cost_of(const CrossEntropySums& op) {
  return memory_cost("CrossEntropySums", op.logits, {op.logits});
}

OperationCost cost_of(const CrossEntropyLoss& op) {
  return memory_cost("CrossEntropyLoss", op.sums, {op.sums});
}

OperationCost cost_of(const CrossEntropyBackward& op) {
  return memory_cost("CrossEntropyBackward", op.logits, {op.logits, op.logits});
}

OperationCost cost_of(const SumOfSquares& op) {
  OperationCost cost = memory_cost("SumOfSquares", ConstTensorView(), {});
  for (const ConstTensorView& part : op.parts) cost.bytes += static_cast<double>(part.bytes());
  return cost;
}

OperationCost cost_of(const ExactSumOfSquares& op) {
  OperationCost cost = memory_cost("ExactSumOfSquares", ConstTensorView(), {});
  for (const SquaresPart& part : op.parts) cost.bytes += static_cast<double>(part.x.bytes());
  return cost;
}

OperationCost cost_of(const AdamW& op) {
  return memory_cost("AdamW", op.parameter,
                     {op.parameter, op.parameter, op.exp_avg, op.exp_avg, op.exp_avg_sq,
                      op.exp_avg_sq, op.gradient, op.working});
}

OperationCost cost_of_copy(std::size_t bytes) {
  return {.operation = "copy",
          .cost_class = CostClass::memory,
          .dtype = DType::f32,
          .bytes = 2.0 * static_cast<double>(bytes)};
}

OperationCost cost_of_fill(std::size_t bytes) {
  return {.operation = "fill",
          .cost_class = CostClass::memory,
          .dtype = DType::f32,
          .bytes = static_cast<double>(bytes)};
}

}  // namespace redspine
