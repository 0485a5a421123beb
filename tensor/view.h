// Non-owning, contiguous, row-major, typed views of memory on some device. A view carries its
// count, so a collective or a copy cannot be given the wrong number. Views are values: pass them
// by copy. They never outlive the Tensor (or the flat buffer) that they look into.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tensor/bfloat16.h"

namespace redspine {

enum class DType : std::uint8_t { f32, f64, i32, i64, bf16 };

/// Bytes of one element.
std::size_t size_of(DType dtype);
const char* name_of(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::f64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType kValue = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType kValue = DType::i64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::bf16;
};

/// The dims of a tensor, at most four, outermost first. A dim may be 0 (an empty shard).
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape(std::initializer_list<std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const {
    assert(dim >= 0 && dim < rank_);
    return dims_[static_cast<std::size_t>(dim)];
  }
  /// The same shape with `dim` replaced.
  Shape with(int dim, std::int64_t size) const;
  std::vector<std::int64_t> dims() const { return {dims_.begin(), dims_.begin() + rank_}; }
  /// Number of elements.
  std::int64_t count() const;
  std::string to_string() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_;
};

namespace detail {

/// Throws Error: elements of `held` are not `wanted`.
[[noreturn]] void reject_elements(DType held, DType wanted, const Shape& shape);

/// What both kinds of view share; `Pointer` is `void*` or `const void*`.
template <class Pointer>
class BasicView {
 public:
  BasicView() = default;
  BasicView(Pointer data, DType dtype, Shape shape) : data_(data), shape_(shape), dtype_(dtype) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t dim(int d) const { return shape_[d]; }
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype_); }
  Pointer raw() const { return data_; }

  /// The last dim, and the product of the others: any tensor seen as a matrix.
  std::int64_t cols() const { return shape_[shape_.rank() - 1]; }
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (int d = 0; d + 1 < shape_.rank(); ++d) product *= shape_[d];
    return product;
  }

 protected:
  Pointer data_ = nullptr;
  Shape shape_{0};
  DType dtype_ = DType::f32;
};

}  // namespace detail

class ConstTensorView : public detail::BasicView<const void*> {
 public:
  using BasicView::BasicView;

  /// The elements; Error where T is not their type, as in a kernel of the CPU that is given bf16.
  template <class T>
  const T* data() const {
    if (dtype_ != DTypeOf<T>::kValue) detail::reject_elements(dtype_, DTypeOf<T>::kValue, shape_);
    return static_cast<const T*>(data_);
  }
  /// The same elements under another shape of equal count.
  ConstTensorView reshape(Shape shape) const;
  /// Elements [begin, begin + count) of the outermost dim.
  ConstTensorView slice(std::int64_t begin, std::int64_t count) const;
};

class TensorView : public detail::BasicView<void*> {
 public:
  using BasicView::BasicView;

  template <class T>
  T* data() const {
    if (dtype_ != DTypeOf<T>::kValue) detail::reject_elements(dtype_, DTypeOf<T>::kValue, shape_);
    return static_cast<T*>(data_);
  }
  TensorView reshape(Shape shape) const;
  TensorView slice(std::int64_t begin, std::int64_t count) const;
  operator ConstTensorView() const { return {data_, dtype_, shape_}; }  // NOLINT: a view decays
};

/// Throws Error unless `from` has the type and the number of elements that a copy to `to` needs.
void check_copy(TensorView to, ConstTensorView from);

}  // namespace redspine
