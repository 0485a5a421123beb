#include "tensor/ops.h"

#include <numeric>

#include "tensor/operand_checks.h"

namespace redspine::ops {
namespace {

// out[num_sums * M,N] = a[M,K] x b, where b is [K, N], or [N, K] to be transposed.
void check_product(const char* op, const Operand& out, const Operand& a, const Operand& b,
                   Transpose transpose_b, int num_sums = 1) {
  check_same_type(op, b, a);
  if (out.view.dtype() != DType::f32) check_same_type(op, out, a);
  const bool turned = transpose_b == Transpose::yes;
  require(a.cols() == (turned ? b.cols() : b.rows()) && out.rows() == num_sums * a.rows() &&
              out.cols() == (turned ? b.rows() : b.cols()),
          op, "{} x {}{} does not give {}", a, b, turned ? " transposed" : "", out);
}

void check_dropout(const char* op, const DropoutKey& dropout, std::int64_t batch) {
  require(dropout.probability >= 0.0F && dropout.probability < 1.0F, op,
          "a dropout probability of {} is outside [0, 1)", dropout.probability);
  if (dropout.probability > 0.0F) {
    check_count(op, {"samples", dropout.samples_B}, batch, DType::i64);
  }
}

// qkv is [B, T, (h + 2g) K], context [B, T, h K], log_sum_exp B h T; every query head has its key.
void check_heads(const char* op, const HeadLayout& heads, const Operand& qkv,
                 const Operand& context, const Operand& log_sum_exp) {
  require(heads.num_heads > 0 && heads.num_kv_heads > 0 && heads.head_size > 0 &&
              heads.queries_per_kv > 0 && heads.first_query >= 0,
          op,
          "{} heads, {} kv heads, size {}, {} queries per kv and first query {} are no head layout",
          heads.num_heads, heads.num_kv_heads, heads.head_size, heads.queries_per_kv,
          heads.first_query);
  const std::int64_t last_kv = heads.kv_head_of(heads.num_heads - 1);
  require(last_kv < heads.num_kv_heads, op,
          "{} query heads from number {} on, {} per kv head, need {} kv heads, not {}",
          heads.num_heads, heads.first_query, heads.queries_per_kv, last_kv + 1,
          heads.num_kv_heads);
  check_sequences(op, qkv);
  const std::int64_t batch = qkv.view.dim(0);
  const std::int64_t sequence = qkv.view.dim(1);
  check_same_type(op, context, qkv);
  check_size(op, qkv, batch * sequence,
             (heads.num_heads + 2 * heads.num_kv_heads) * heads.head_size);
  check_size(op, context, batch * sequence, heads.num_heads * heads.head_size);
  check_count(op, log_sum_exp, batch * heads.num_heads * sequence);
}

}  // namespace

void check(const Matmul& op) {
  const int num_sums = op.order == nullptr ? 1 : op.order->num_sums;
  check_product("Matmul", {"out", op.out}, {"a", op.a}, {"b", op.b}, op.transpose_b, num_sums);
  if (op.order != nullptr) {
    check_order("Matmul", *op.order, op.a.cols());
    require(op.bias.count() == 0, "Matmul", "a product in an order has no bias");
  }
  if (op.bias.count() != 0) {
    check_count("Matmul", {"bias", op.bias}, op.out.cols(), op.out.dtype());
  }
}

void check(const AddBias& op) {
  const Operand x{"x", op.x};
  check_float("AddBias", x);
  check_count("AddBias", {"bias", op.bias}, op.x.cols(), op.x.dtype());
}

void check(const Accumulate& op) {
  check_dtype("Accumulate", {"sum", op.sum}, DType::f32);
  check_same_count("Accumulate", {"x", op.x}, {"sum", op.sum});
}

void check(const MatmulGelu& op) {
  check_product("MatmulGelu", {"out", op.out}, {"a", op.a}, {"b", op.b}, Transpose::yes);
  check_same_type("MatmulGelu", {"out", op.out}, {"a", op.a});
  check_same_matrix("MatmulGelu", {"x", op.x}, {"out", op.out});
  if (op.bias.count() != 0) {
    check_count("MatmulGelu", {"bias", op.bias}, op.out.cols(), op.out.dtype());
  }
}

void check(const MatmulGeluBackward& op) {
  check_product("MatmulGeluBackward", {"dx", op.dx}, {"a", op.a}, {"b", op.b}, Transpose::no);
  check_same_type("MatmulGeluBackward", {"dx", op.dx}, {"a", op.a});
  check_same_matrix("MatmulGeluBackward", {"x", op.x}, {"dx", op.dx});
}

void check(const WeightGradient& op) {
  const Operand dy{"dy", op.dy};
  const Operand x{"x", op.x};
  check_same_type("WeightGradient", x, dy);
  require(dy.rows() == x.rows(), "WeightGradient", "{} and {} differ in their rows", dy, x);
  check_matrix("WeightGradient", {"dweight", op.dweight}, op.dy.cols(), op.x.cols());
  if (op.dbias.count() != 0) check_count("WeightGradient", {"dbias", op.dbias}, op.dy.cols());
  require(op.sample_rows == 0 || (op.sample_rows > 0 && dy.rows() % op.sample_rows == 0),
          "WeightGradient", "{} does not hold whole samples of {} rows", dy, op.sample_rows);
}

void check(const LayerNorm& op) {
  check_same_matrix("LayerNorm", {"out", op.out}, {"x", op.x});
  check_count("LayerNorm", {"mean", op.mean}, op.x.rows());
  check_count("LayerNorm", {"rstd", op.rstd}, op.x.rows());
  check_count("LayerNorm", {"weight", op.weight}, op.x.cols());
  if (op.bias.count() != 0) check_count("LayerNorm", {"bias", op.bias}, op.x.cols());
}

void check(const AddLayerNorm& op) {
  check_same_matrix("AddLayerNorm", {"branch", op.branch}, {"residual", op.residual});
  check_same_matrix("AddLayerNorm", {"sum", op.sum}, {"residual", op.residual});
  check_same_matrix("AddLayerNorm", {"out", op.out}, {"sum", op.sum});
  check_count("AddLayerNorm", {"mean", op.mean}, op.sum.rows());
  check_count("AddLayerNorm", {"rstd", op.rstd}, op.sum.rows());
  check_count("AddLayerNorm", {"weight", op.weight}, op.sum.cols());
  if (op.bias.count() != 0) check_count("AddLayerNorm", {"bias", op.bias}, op.sum.cols());
}

void check(const LayerNormBackward& op) {
  check_same_matrix("LayerNormBackward", {"dx", op.dx}, {"x", op.x});
  check_same_matrix("LayerNormBackward", {"dout", op.dout}, {"x", op.x});
  check_count("LayerNormBackward", {"mean", op.mean}, op.x.rows());
  check_count("LayerNormBackward", {"rstd", op.rstd}, op.x.rows());
  check_count("LayerNormBackward", {"weight", op.weight}, op.x.cols());
  check_count("LayerNormBackward", {"dweight", op.dweight}, op.x.cols());
  if (op.dbias.count() != 0) check_count("LayerNormBackward", {"dbias", op.dbias}, op.x.cols());
}

void check(const RmsNorm& op) {
  check_same_matrix("RmsNorm", {"out", op.out}, {"x", op.x});
  check_count("RmsNorm", {"rstd", op.rstd}, op.x.rows());
  check_count("RmsNorm", {"weight", op.weight}, op.x.cols());
}

void check(const AddRmsNorm& op) {
  check_same_matrix("AddRmsNorm", {"branch", op.branch}, {"residual", op.residual});
  check_same_matrix("AddRmsNorm", {"sum", op.sum}, {"residual", op.residual});
  check_same_matrix("AddRmsNorm", {"out", op.out}, {"sum", op.sum});
  check_count("AddRmsNorm", {"rstd", op.rstd}, op.sum.rows());
  check_count("AddRmsNorm", {"weight", op.weight}, op.sum.cols());
}

void check(const RmsNormBackward& op) {
  check_same_matrix("RmsNormBackward", {"dx", op.dx}, {"x", op.x});
  check_same_matrix("RmsNormBackward", {"dout", op.dout}, {"x", op.x});
  check_count("RmsNormBackward", {"rstd", op.rstd}, op.x.rows());
  check_count("RmsNormBackward", {"weight", op.weight}, op.x.cols());
  check_count("RmsNormBackward", {"dweight", op.dweight}, op.x.cols());
}

void check(const Rope& op) {
  const Operand x{"x", op.x};
  const Operand cos{"cos", op.cos};
  check_sequences("Rope", x);
  check_dtype("Rope", cos, DType::f32);
  check_same_matrix("Rope", {"sin", op.sin}, cos);
  require(cos.rows() >= op.x.dim(1), "Rope", "{} has angles for {} positions of {}", cos,
          cos.rows(), x);
  const std::int64_t head_size = 2 * cos.cols();
  require(head_size > 0 && x.cols() % head_size == 0, "Rope",
          "{} does not hold whole heads of size {}", x, head_size);
  require(op.num_rotated_heads >= 0 && op.num_rotated_heads * head_size <= x.cols(), "Rope",
          "{} does not hold {} heads of size {}", x, op.num_rotated_heads, head_size);
}

void check(const Dropout& op) {
  check_same_matrix("Dropout", {"out", op.out}, {"x", op.x});
  check_sequences("Dropout", {"x", op.x});
  check_dropout("Dropout", op.dropout, op.x.dim(0));
  require(op.first_position >= 0, "Dropout", "position {} lies before a sample", op.first_position);
}

void check(const Attention& op) {
  check_heads("Attention", op.heads, {"qkv", op.qkv}, {"context", op.context},
              {"log_sum_exp", op.log_sum_exp_BhT});
  check_dropout("Attention", op.dropout, op.qkv.dim(0));
}

void check(const AttentionBackward& op) {
  check_heads("AttentionBackward", op.heads, {"qkv", op.qkv}, {"context", op.context},
              {"log_sum_exp", op.log_sum_exp_BhT});
  check_same_matrix("AttentionBackward", {"dqkv", op.dqkv}, {"qkv", op.qkv});
  check_same_matrix("AttentionBackward", {"dcontext", op.dcontext}, {"context", op.context});
  check_dropout("AttentionBackward", op.dropout, op.qkv.dim(0));
  const auto num_kv_heads = static_cast<std::size_t>(op.heads.num_kv_heads);
  if (op.order == nullptr) {
    require(op.dkv_sums.count() == 0, "AttentionBackward", "sums of dK and dV need an order");
    return;
  }
  require(op.order->groups.size() == num_kv_heads && op.order->num_sums.size() == num_kv_heads,
          "AttentionBackward", "an order of {} heads for {}", op.order->groups.size(),
          num_kv_heads);
  const std::int64_t num_sums =
      std::accumulate(op.order->num_sums.begin(), op.order->num_sums.end(), std::int64_t{0});
  if (op.dkv_sums.count() != 0) {
    check_count("AttentionBackward", {"dkv_sums", op.dkv_sums},
                2 * num_sums * op.qkv.rows() * op.heads.head_size);
  } else {
    require(num_sums == op.heads.num_kv_heads, "AttentionBackward",
            "{} sums of {} key and value heads have no place", num_sums, num_kv_heads);
  }
}

void check(const CopyColumns& op) {
  const Operand out{"out", op.out};
  const Operand x{"x", op.x};
  check_same_type("CopyColumns", x, out);
  require(x.rows() == out.rows() && op.first >= 0 && op.first + x.cols() <= out.cols(),
          "CopyColumns", "{} has no place in {} from column {} on", x, out, op.first);
}

void check(const Swiglu& op) {
  check_same_type("Swiglu", {"gate_up", op.gate_up}, {"out", op.out});
  check_size("Swiglu", {"gate_up", op.gate_up}, op.out.rows(), 2 * op.out.cols());
}

void check(const SwigluBackward& op) {
  check_same_type("SwigluBackward", {"gate_up", op.gate_up}, {"dout", op.dout});
  check_size("SwigluBackward", {"gate_up", op.gate_up}, op.dout.rows(), 2 * op.dout.cols());
  check_same_matrix("SwigluBackward", {"dgate_up", op.dgate_up}, {"gate_up", op.gate_up});
}

}  // namespace redspine::ops
