#include "tensor/view.h"

#include <fmt/format.h>

#include "tensor/error.h"

namespace redspine {
namespace {

void check_reshape(const Shape& from, const Shape& to) {
  if (from.count() != to.count()) {
    throw Error(
        fmt::format("a view of shape {} cannot be seen as {}", from.to_string(), to.to_string()));
  }
}

// Byte offset of a slice of the outermost dim.
std::ptrdiff_t check_slice(const Shape& shape, DType dtype, std::int64_t begin,
                           std::int64_t count) {
  if (begin < 0 || count < 0 || begin + count > shape[0]) {
    throw Error(fmt::format("slice [{}, {}) lies outside a view of shape {}", begin, begin + count,
                            shape.to_string()));
  }
  const std::int64_t row = shape.with(0, 1).count();
  return static_cast<std::ptrdiff_t>(begin * row) * static_cast<std::ptrdiff_t>(size_of(dtype));
}

}  // namespace

void detail::reject_elements(DType held, DType wanted, const Shape& shape) {
  throw Error(fmt::format("a tensor {} in {} was given to what computes in {} on the CPU",
                          shape.to_string(), name_of(held), name_of(wanted)));
}

void check_copy(TensorView to, ConstTensorView from) {
  if (to.dtype() == from.dtype() && to.count() == from.count()) return;
  throw Error(fmt::format("cannot copy {} {} to {} {}", name_of(from.dtype()),
                          from.shape().to_string(), name_of(to.dtype()), to.shape().to_string()));
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  throw Error("unknown dtype");
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::bf16:
      return "bf16";
  }
  throw Error("unknown dtype");
}

Shape::Shape(std::initializer_list<std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (rank_ < 1 || rank_ > kMaxRank)
    throw Error(fmt::format("a shape has 1 to 4 dims, not {}", rank_));
  std::size_t d = 0;
  for (std::int64_t size : dims) {
    if (size < 0) throw Error(fmt::format("a dim cannot be {}", size));
    dims_[d++] = size;
  }
}

Shape Shape::with(int dim, std::int64_t size) const {
  Shape shape = *this;
  assert(dim >= 0 && dim < rank_ && size >= 0);
  shape.dims_[static_cast<std::size_t>(dim)] = size;
  return shape;
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank_; ++d) product *= dims_[static_cast<std::size_t>(d)];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

ConstTensorView ConstTensorView::reshape(Shape shape) const {
  check_reshape(shape_, shape);
  return {data_, dtype_, shape};
}

ConstTensorView ConstTensorView::slice(std::int64_t begin, std::int64_t count) const {
  const std::ptrdiff_t offset = check_slice(shape_, dtype_, begin, count);
  return {static_cast<const std::byte*>(data_) + offset, dtype_, shape_.with(0, count)};
}

TensorView TensorView::reshape(Shape shape) const {
  check_reshape(shape_, shape);
  return {data_, dtype_, shape};
}

TensorView TensorView::slice(std::int64_t begin, std::int64_t count) const {
  const std::ptrdiff_t offset = check_slice(shape_, dtype_, begin, count);
  return {static_cast<std::byte*>(data_) + offset, dtype_, shape_.with(0, count)};
}

}  // namespace redspine
