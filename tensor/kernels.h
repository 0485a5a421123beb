// The operations that a transformer needs, as one narrow interface that a backend implements.
// Callers use the functions of tensor/ops.h, which check shapes once; a backend trusts them.
//
// Every kernel runs on the device's compute stream. For each output the argument struct says
// *written* (old content is not read), *accumulated* (+=) or *in place*. Every sum has one fixed
// order on a backend, so that two runs give the same bits; on the CPU it does not depend on the
// number of threads either.
//
// Shapes: B micro-batch, T sequence, D hidden, H heads, K head size, F MLP size, V vocabulary,
// N = B*T rows; lower case is this rank's share.
//
// Types: the activations of an operation, and what they are multiplied with or looked up in, are
// all f32 or all bf16; `x`, `out`, `dout` and their like are activations. Statistics, weights and
// biases of norms, gradients of parameters, sums and the optimizer's state are f32 unless a type is
// named. Whatever is bf16 is computed in f32 and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/adamw.h"
#include "tensor/head_layout.h"
#include "tensor/inner_order.h"
#include "tensor/operation_list.h"
#include "tensor/view.h"

namespace redspine {

enum class Transpose { no, yes };
enum class GeluKind { tanh, exact };
enum class RopeDirection { forward, backward };
/// Whether a result replaces what was there or is added to it.
enum class Update { write, accumulate };

/// out[M,N] = A B (+ bias), where B[K,N] is `b` or its transpose. `out` has the type of `a` and `b`
/// or is f32; `bias` has the type of `out`.
struct Matmul {
  TensorView out;     // [M, N], or with an order [num_sums * M, N]; written
  ConstTensorView a;  // [M, K]
  ConstTensorView b;  // [K, N], or [N, K] to be transposed
  Transpose transpose_b = Transpose::no;
  ConstTensorView bias = {};          // [N], added to every row, or empty (count 0) for none
  const InnerOrder* order = nullptr;  // exact mode: without a bias
};

/// x[r,c] += bias[c]: where the bias comes after a sum over ranks.
struct AddBias {
  TensorView x;          // [M, N], in place
  ConstTensorView bias;  // [N]
};

/// sum += x, element by element.
struct Accumulate {
  TensorView sum;  // in place
  ConstTensorView x;
};

/// x = A B^T (+ bias), kept for the backward pass; out = gelu(x), where gelu is
/// tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); exact: 0.5 x (1 + erf(x / sqrt(2)))
/// (Hendrycks and Gimpel, arXiv 1606.08415).
struct MatmulGelu {
  TensorView out;        // [M, N], written
  TensorView x;          // [M, N], written
  ConstTensorView a;     // [M, K]
  ConstTensorView b;     // [N, K]
  ConstTensorView bias;  // [N], or empty
  GeluKind kind;
};

/// dx = (A B) * gelu'(x): an input gradient and on through the activation that made the input.
struct MatmulGeluBackward {
  TensorView dx;      // [M, N], written
  ConstTensorView a;  // [M, K]
  ConstTensorView b;  // [K, N]
  ConstTensorView x;  // [M, N]
  GeluKind kind;
};

/// Sums over rows on the CPU: blocks of so many rows, counted from where a sample begins, are added
/// up, and then these sums one after another.
inline constexpr std::int64_t kSummedRows = 32;

/// Of y = x W^T + bias: dweight += dy^T x, dbias[c] += sum over rows of dy[r,c], in blocks of rows
/// that depend on the shape alone.
struct WeightGradient {
  TensorView dweight;  // [C, K], by `update`
  TensorView dbias;    // [C], accumulated, or empty
  ConstTensorView dy;  // [R, C]
  ConstTensorView x;   // [R, K]
  Update update = Update::accumulate;
  /// The rows of a sample, whose gradients are added up one after another (exact mode); 0: of all.
  std::int64_t sample_rows = 0;
};

/// Layer normalisation over the last dim (Ba et al., arXiv 1607.06450):
/// out = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(variance + epsilon), biased variance.
struct LayerNorm {
  TensorView out;          // [N, D], written
  TensorView mean;         // [N], written
  TensorView rstd;         // [N], written
  ConstTensorView x;       // [N, D]
  ConstTensorView weight;  // [D]
  ConstTensorView bias;    // [D], or empty
  float epsilon;
};

/// In one pass over the rows: sum = residual + branch, out = LayerNorm(sum) of the rounded sum.
struct AddLayerNorm {
  TensorView out;            // [N, D], written
  TensorView sum;            // [N, D], written
  TensorView mean;           // [N], written
  TensorView rstd;           // [N], written
  ConstTensorView residual;  // [N, D]
  ConstTensorView branch;    // [N, D]
  ConstTensorView weight;    // [D]
  ConstTensorView bias;      // [D], or empty
  float epsilon;
};

/// With n = (x - mean) * rstd and g = dout * weight, samples one after another:
/// dx += rstd * (g - mean_D(g) - n * mean_D(g * n)); dweight += sum_N(dout * n); dbias +=
/// sum_N(dout).
struct LayerNormBackward {
  TensorView dx;       // [N, D], accumulated
  TensorView dweight;  // [D], accumulated
  TensorView dbias;    // [D], accumulated, or empty
  ConstTensorView dout;
  ConstTensorView x;
  ConstTensorView mean;
  ConstTensorView rstd;
  ConstTensorView weight;
};

/// RMS normalisation (Zhang and Sennrich, arXiv 1910.07467):
/// out = x * rstd * weight, rstd = 1 / sqrt(mean_D(x^2) + epsilon).
struct RmsNorm {
  TensorView out;          // [N, D], written
  TensorView rstd;         // [N], written
  ConstTensorView x;       // [N, D]
  ConstTensorView weight;  // [D]
  float epsilon;
};

/// In one pass over the rows: sum = residual + branch, out = RmsNorm(sum) of the rounded sum.
struct AddRmsNorm {
  TensorView out;            // [N, D], written
  TensorView sum;            // [N, D], written
  TensorView rstd;           // [N], written
  ConstTensorView residual;  // [N, D]
  ConstTensorView branch;    // [N, D]
  ConstTensorView weight;    // [D]
  float epsilon;
};

/// With n = x * rstd and g = dout * weight: dx += rstd * (g - n * mean_D(g * n));
/// dweight += sum_N(dout * n).
struct RmsNormBackward {
  TensorView dx;       // [N, D], accumulated
  TensorView dweight;  // [D], accumulated
  ConstTensorView dout;
  ConstTensorView x;
  ConstTensorView rstd;
  ConstTensorView weight;
};

/// Rotary position embedding (Su et al., arXiv 2104.09864) with the half-split pairing of
/// `transformers`: for i < K/2, (x[i], x[i+K/2]) turns by the angle of (t, i), in each of the
/// first `num_rotated_heads` heads of every row. `backward` turns the other way (the transpose).
struct Rope {
  TensorView x;         // [B, T, heads * K], in place
  ConstTensorView cos;  // [>= T, K/2]
  ConstTensorView sin;  // [>= T, K/2]
  std::int64_t num_rotated_heads;
  RopeDirection direction;
};

/// Counter-based dropout: an element is dropped where its 32 random bits are below
/// probability * 2^32, the others are divided by (1 - probability). The bits are
/// philox4x32(key, counter)[e % 4]; the counter holds e / 4 and the row's global sample number,
/// where e is the element's number within its sample, so no layout or rank enters.
struct DropoutKey {
  std::uint64_t key = 0;
  float probability = 0.0F;   // 0 = none; below 1
  ConstTensorView samples_B;  // i64, global sample number of each batch row
};

/// out = dropped(x). The backward pass is the same operation on the gradient.
struct Dropout {
  TensorView out;  // [B, T, D], written; may be x itself
  ConstTensorView x;
  DropoutKey dropout;
  std::int64_t first_position = 0;  // of the T that are here, in each sample
};

/// S = Q K^T / sqrt(K) where key <= query, else -inf; P = softmax(S); context = dropped(P) V.
/// Computed in blocks over T with a running maximum and sum (Dao et al., arXiv 2205.14135); no
/// T x T matrix is stored. Dropout counts elements by (global head, query, key).
struct Attention {
  TensorView context;          // [B, T, h * K], written
  TensorView log_sum_exp_BhT;  // log of the sum of exp(S) per row, written
  ConstTensorView qkv;         // [B, T, (h + 2g) * K]
  HeadLayout heads;
  DropoutKey dropout;
};

/// Gradients of Attention; P is recomputed from log_sum_exp. With dP = dropped(dcontext V^T):
/// dS = P * (dP - rowsum(dcontext * context)), dQ = dS K / sqrt(K), dK = dS^T Q / sqrt(K),
/// dV = dropped(P)^T dcontext; dK and dV of a shared head are summed over its queries.
struct AttentionBackward {
  TensorView dqkv;  // [B, T, (h + 2g) * K], written
  ConstTensorView dcontext;
  ConstTensorView qkv;
  ConstTensorView context;
  ConstTensorView log_sum_exp_BhT;
  HeadLayout heads;
  DropoutKey dropout;
  const HeadOrder* order = nullptr;  // exact mode
  /// Where ranks share key and value heads in exact mode: dK and dV go here instead of to `dqkv`,
  /// for each kv head all its sums, each [2, B, T, K], dK before dV; written.
  TensorView dkv_sums = {};
};

/// out[r, first + c] = x[r, c].
struct CopyColumns {
  TensorView out;     // [N, columns], written there
  ConstTensorView x;  // [N, fewer columns]
  std::int64_t first;
};

/// SwiGLU (Shazeer, arXiv 2002.05202): out = silu(gate) * up, silu(z) = z / (1 + exp(-z)).
/// A row of `gate_up` holds f gate values, then f up values.
struct Swiglu {
  TensorView out;           // [N, f], written
  ConstTensorView gate_up;  // [N, 2f]
};

struct SwigluBackward {
  TensorView dgate_up;   // [N, 2f], written
  ConstTensorView dout;  // [N, f]
  ConstTensorView gate_up;
};

/// out[b,t] = weight[token[b,t] - first_row], or -0 where the token's row lies in another shard,
/// + position[t].
struct Embedding {
  TensorView out;            // [B, T, D], written
  ConstTensorView weight;    // [v, D]
  ConstTensorView position;  // [>= T, D], or empty
  ConstTensorView tokens;    // [B, T] i32
  std::int64_t first_row;
};

/// dweight[token[n] - first_row] += dout[n], n in ascending order for each row;
/// dposition[t] += dout[b,t], b ascending.
struct EmbeddingBackward {
  TensorView dweight;    // [v, D], accumulated
  TensorView dposition;  // [>= T, D], accumulated, or empty
  ConstTensorView dout;  // [B, T, D]
  ConstTensorView tokens;
  std::int64_t first_row;
};

/// max[n] = max over this shard of logits[n]; -inf for an empty shard. A NaN is passed over: it
/// reaches the loss through CrossEntropySums, whatever the reduction over shards does with NaN.
struct RowMax {
  TensorView max;          // [N], written
  ConstTensorView logits;  // [N, v]
};

/// First half of cross entropy over a vocabulary shard. sums[0][n] = sum of exp(logits - max),
/// sums[1][n] = logit of the target - max where the shard has it, else 0. `max` is over all
/// shards; `sums` are to be added over them. A target of -1 is ignored (sums[1] = 0).
struct CrossEntropySums {
  TensorView sums;                    // [2, N], or with an order [num_sums, 2, N]; written
  ConstTensorView logits;             // [N, v]
  ConstTensorView max;                // [N]
  ConstTensorView targets;            // [N] i32
  std::int64_t first_column;          // global number of logits' first column
  const InnerOrder* order = nullptr;  // exact mode: of the columns, a part for each leaf
};

/// loss += sum over n with a target of log(sums[0][n]) - sums[1][n].
struct CrossEntropyLoss {
  TensorView loss;       // [1] f64, or the i64 values of an ExactSum; accumulated
  ConstTensorView sums;  // [2, N], added over the shards
  ConstTensorView targets;
};

/// logits become their gradient: (exp(logits - max) / sums[0] - [column is target]) * scale, and
/// 0 in rows without a target.
struct CrossEntropyBackward {
  TensorView logits;  // [N, v], in place
  ConstTensorView max;
  ConstTensorView sums;
  ConstTensorView targets;
  std::int64_t first_column;
  float scale;
};

/// sum += sum of x^2 over all elements x of the parts, in f64.
struct SumOfSquares {
  TensorView sum;                          // [1] f64, accumulated
  std::span<const ConstTensorView> parts;  // read until the call returns, as is every span here
};

/// A matrix, and the columns at which its rows are cut for ExactSumOfSquares.
struct SquaresPart {
  ConstTensorView x;                   // [rows, columns] f32
  std::vector<std::int64_t> col_ends;  // ascending, up to the last column
};

/// sum += sum of x^2 over all elements x of the parts: each piece of a row by itself in f64 and in
/// one order, and the pieces without one (ExactSum).
struct ExactSumOfSquares {
  TensorView sum;  // the i64 values of an ExactSum, accumulated
  std::span<const SquaresPart> parts;
};

/// A backend's implementation of the operations, one run() each.
class Kernels {
 public:
  Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  virtual ~Kernels() = default;

#define REDSPINE_RUN(Operation) virtual void run(const Operation&) const = 0;
  REDSPINE_FOR_EACH_OPERATION(REDSPINE_RUN)
#undef REDSPINE_RUN
};

}  // namespace redspine
