// What the checks of operations (tensor/ops.cpp, tensor/ops_loss.cpp) say about operands: each
// throws Error unless it holds. Internal to tensor; pure.
#pragma once

#include <fmt/format.h>

#include "tensor/error.h"
#include "tensor/inner_order.h"
#include "tensor/view.h"

namespace redspine::ops {

/// An operand under the name that messages give it.
struct Operand {
  const char* name;
  ConstTensorView view;

  std::int64_t rows() const { return view.rows(); }
  std::int64_t cols() const { return view.cols(); }
};

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

// Throws Error unless it holds. Most operations are small and all are right: the text is made when
// one is wrong, and not before.
template <class... Args>
void require(bool holds, const char* op, fmt::format_string<const Args&...> text,
             const Args&... args) {
  if (!holds) throw Error(fmt::format("{}: {}", op, fmt::format(text, args...)));
}

inline void check_dtype(const char* op, const Operand& x, DType dtype) {
  require(x.view.dtype() == dtype, op, "{} is {}, it must be {}", x, name_of(x.view.dtype()),
          name_of(dtype));
}

// The types that are computed with.
inline void check_float(const char* op, const Operand& x) {
  const DType dtype = x.view.dtype();
  require(dtype == DType::f32 || dtype == DType::bf16, op, "{} is {}, it must be f32 or bf16", x,
          name_of(dtype));
}

// Activations of one operation, which share their type.
inline void check_same_type(const char* op, const Operand& x, const Operand& like) {
  check_float(op, x);
  check_float(op, like);
  require(x.view.dtype() == like.view.dtype(), op, "{} is {}, {} is {}; they must have one type", x,
          name_of(x.view.dtype()), like, name_of(like.view.dtype()));
}

// Any tensor whose last dim is `cols` and whose other dims multiply to `rows`.
inline void check_size(const char* op, const Operand& x, std::int64_t rows, std::int64_t cols) {
  require(x.rows() == rows && x.cols() == cols, op, "{} must be {} rows of {}", x, rows, cols);
}

inline void check_matrix(const char* op, const Operand& x, std::int64_t rows, std::int64_t cols) {
  check_dtype(op, x, DType::f32);
  check_size(op, x, rows, cols);
}

inline void check_count(const char* op, const Operand& x, std::int64_t count,
                        DType dtype = DType::f32) {
  check_dtype(op, x, dtype);
  require(x.view.count() == count, op, "{} must hold {} elements", x, count);
}

inline void check_same_matrix(const char* op, const Operand& x, const Operand& like) {
  check_same_type(op, x, like);
  require(x.rows() == like.rows() && x.cols() == like.cols(), op, "{} and {} differ", x, like);
}

inline void check_same_count(const char* op, const Operand& x, const Operand& like) {
  check_same_type(op, x, like);
  require(x.view.count() == like.view.count(), op, "{} and {} differ", x, like);
}

// The parts of a dim of `count`, and what is left of their sums.
inline void check_order(const char* op, const InnerOrder& order, std::int64_t count) {
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
inline void check_sequences(const char* op, const Operand& x) {
  check_float(op, x);
  require(x.view.shape().rank() == 3, op, "{} must have the dims [B, T, columns]", x);
}

}  // namespace redspine::ops
