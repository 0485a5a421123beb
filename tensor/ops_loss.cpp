// The checks of what comes before the first block and after the last, and of the optimizer.
#include "tensor/exact_sum.h"
#include "tensor/operand_checks.h"
#include "tensor/ops.h"

namespace redspine::ops {
namespace {

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

}  // namespace

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
