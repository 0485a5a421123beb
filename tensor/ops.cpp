#include "tensor/ops.h"

#include <fmt/format.h>

#include <numeric>

#include "tensor/error.h"
#include "tensor/exact_sum.h"

namespace redspine::ops {
namespace {

// An operand under the name that messages give it.
struct Operand {
  const char* name;
  ConstTensorView view;

  std::int64_t rows() const { return view.rows(); }
  std::int64_t cols() const { return view.cols(); }
};

}  // namespace
}  // namespace redspine::ops

// In messages an operand is its name and its shape.
template <>
struct fmt::formatter<redspine::ops::Operand> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const redspine::ops::Operand& x, Context& context) const {
    return fmt::format_to(context.out(), "{} {}", x.name, x.view.shape().to_string());
  }
};

namespace redspine::ops {
namespace {

// Throws Error unless it holds. Most operations are small and all are right: the text is made when
// one is wrong, and not before.
template <class... Args>
void require(bool holds, const char* op, fmt::format_string<const Args&...> text,
             const Args&... args) {
  if (!holds) throw Error(fmt::format("{}: {}", op, fmt::format(text, args...)));
}

void check_dtype(const char* op, const Operand& x, DType dtype) {
  require(x.view.dtype() == dtype, op, "{} is {}, it must be {}", x, name_of(x.view.dtype()),
          name_of(dtype));
}

// The types that are computed with.
void check_float(const char* op, const Operand& x) {
  const DType dtype = x.view.dtype();
  require(dtype == DType::f32 || dtype == DType::bf16, op, "{} is {}, it must be f32 or bf16", x,
          name_of(dtype));
}

// Activations of one operation, which share their type.
void check_same_type(const char* op, const Operand& x, const Operand& like) {
  check_float(op, x);
  check_float(op, like);
  require(x.view.dtype() == like.view.dtype(), op, "{} is {}, {} is {}; they must have one type", x,
          name_of(x.view.dtype()), like, name_of(like.view.dtype()));
}

// Any tensor whose last dim is `cols` and whose other dims multiply to `rows`.
void check_size(const char* op, const Operand& x, std::int64_t rows, std::int64_t cols) {
  require(x.rows() == rows && x.cols() == cols, op, "{} must be {} rows of {}", x, rows, cols);
}

void check_matrix(const char* op, const Operand& x, std::int64_t rows, std::int64_t cols) {
  check_dtype(op, x, DType::f32);
  check_size(op, x, rows, cols);
}

void check_count(const char* op, const Operand& x, std::int64_t count, DType dtype = DType::f32) {
  check_dtype(op, x, dtype);
  require(x.view.count() == count, op, "{} must hold {} elements", x, count);
}

void check_same_matrix(const char* op, const Operand& x, const Operand& like) {
  check_same_type(op, x, like);
  require(x.rows() == like.rows() && x.cols() == like.cols(), op, "{} and {} differ", x, like);
}

void check_same_count(const char* op, const Operand& x, const Operand& like) {
  check_same_type(op, x, like);
  require(x.view.count() == like.view.count(), op, "{} and {} differ", x, like);
}

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

// The parts of a dim of `count`, and what is left of their sums.
void check_order(const char* op, const InnerOrder& order, std::int64_t count) {
  int height = 0;
  for (const InnerPart& part : order.parts) {
    require(part.begin >= 0 && part.begin < part.end && part.end <= count, op,
            "an order's part [{}, {}) is none of {}", part.begin, part.end, count);
    if (part.ends_leaf) height += 1 - part.num_merges;
  }
  require(height == order.num_sums && height >= 1 && !order.parts.empty() &&
              order.parts.back().ends_leaf,
          op, "an order that leaves {} sums is said to leave {}", height, order.num_sums);
}

// The dims of a [B, T, columns] tensor.
void check_sequences(const char* op, const Operand& x) {
  check_float(op, x);
  require(x.view.shape().rank() == 3, op, "{} must have the dims [B, T, columns]", x);
}

// One row of x per token, of the width of the weights, and a position for every token of a
// sequence.
void check_embedding(const char* op, const Operand& x, const Operand& tokens, const Operand& weight,
                     const Operand& position) {
  check_sequences(op, x);
  check_count(op, tokens, x.rows(), DType::i32);
  check_size(op, weight, weight.rows(), x.cols());
  if (position.view.count() == 0) return;
  check_same_type(op, position, weight);
  check_size(op, position, position.rows(), x.cols());
  require(position.rows() >= x.view.dim(1), op, "{} has fewer rows than {} has positions", position,
          x);
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

void check(const Embedding& op) {
  check_same_type("Embedding", {"weight", op.weight}, {"out", op.out});
  check_embedding("Embedding", {"out", op.out}, {"tokens", op.tokens}, {"weight", op.weight},
                  {"position", op.position});
}

void check(const EmbeddingBackward& op) {
  check_dtype("EmbeddingBackward", {"dweight", op.dweight}, DType::f32);
  check_embedding("EmbeddingBackward", {"dout", op.dout}, {"tokens", op.tokens},
                  {"dweight", op.dweight}, {"dposition", op.dposition});
}

void check(const RowMax& op) {
  check_float("RowMax", {"logits", op.logits});
  check_count("RowMax", {"max", op.max}, op.logits.rows());
}

void check(const CrossEntropySums& op) {
  const std::int64_t rows = op.logits.rows();
  check_float("CrossEntropySums", {"logits", op.logits});
  check_matrix("CrossEntropySums", {"sums", op.sums},
               2 * std::int64_t{op.order == nullptr ? 1 : op.order->num_sums}, rows);
  if (op.order != nullptr) {
    check_order("CrossEntropySums", *op.order, op.logits.cols());
    for (const InnerPart& part : op.order->parts) {
      require(part.ends_leaf, "CrossEntropySums", "a leaf of the vocabulary is more than one part");
    }
  }
  check_count("CrossEntropySums", {"max", op.max}, rows);
  check_count("CrossEntropySums", {"targets", op.targets}, rows, DType::i32);
}

void check(const CrossEntropyLoss& op) {
  const Operand loss{"loss", op.loss};
  if (op.loss.dtype() == DType::i64) {
    check_count("CrossEntropyLoss", loss, ExactSum::kNumValues, DType::i64);
  } else {
    check_count("CrossEntropyLoss", loss, 1, DType::f64);
  }
  check_dtype("CrossEntropyLoss", {"targets", op.targets}, DType::i32);
  check_matrix("CrossEntropyLoss", {"sums", op.sums}, 2, op.targets.count());
}

void check(const CrossEntropyBackward& op) {
  const std::int64_t rows = op.logits.rows();
  check_float("CrossEntropyBackward", {"logits", op.logits});
  check_matrix("CrossEntropyBackward", {"sums", op.sums}, 2, rows);
  check_count("CrossEntropyBackward", {"max", op.max}, rows);
  check_count("CrossEntropyBackward", {"targets", op.targets}, rows, DType::i32);
}

void check(const SumOfSquares& op) {
  check_count("SumOfSquares", {"sum", op.sum}, 1, DType::f64);
  for (const ConstTensorView& part : op.parts) {
    check_dtype("SumOfSquares", {"part", part}, DType::f32);
  }
}

void check(const ExactSumOfSquares& op) {
  check_count("ExactSumOfSquares", {"sum", op.sum}, ExactSum::kNumValues, DType::i64);
  for (const SquaresPart& part : op.parts) {
    const Operand x{"part", part.x};
    check_dtype("ExactSumOfSquares", x, DType::f32);
    require(!part.col_ends.empty() && part.col_ends.back() == x.cols(), "ExactSumOfSquares",
            "the pieces of {} do not end with its rows", x);
  }
}

void check(const AdamW& op) {
  const Operand parameter{"parameter", op.parameter};
  check_dtype("AdamW", parameter, DType::f32);
  check_same_count("AdamW", {"exp_avg", op.exp_avg}, parameter);
  check_same_count("AdamW", {"exp_avg_sq", op.exp_avg_sq}, parameter);
  check_same_count("AdamW", {"gradient", op.gradient}, parameter);
  if (op.working.count() != 0) {
    check_count("AdamW", {"working", op.working}, op.parameter.count(), DType::bf16);
  }
  const bool has_digests = op.digests.count() != 0;
  if (has_digests) {
    check_count("AdamW", {"digests", op.digests}, 2 * std::ssize(op.parts), DType::i64);
  }
  for (const AdamWPart& part : op.parts) {
    require(part.begin >= 0 && part.count >= 0 && part.begin + part.count <= op.parameter.count(),
            "AdamW", "the {} elements from {} are not all of {}", part.count, part.begin,
            parameter);
    require(!has_digests || part.place.columns > 0, "AdamW", "the part from {} has {} columns",
            part.begin, part.place.columns);
  }
}

}  // namespace redspine::ops
