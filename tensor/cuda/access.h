// How kernels come to the elements of views: their type, and how many a thread moves at once. Host
// code that chooses kernels; local.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "tensor/view.h"

namespace redspine::cuda {

using BFloat = __nv_bfloat16;

inline constexpr int kVectorBytes = 16;
/// Elements of one full access of T.
template <class T>
inline constexpr int kFullWidth = kVectorBytes / static_cast<int>(sizeof(T));

/// The view's elements as device code knows them: float or BFloat.
template <class T>
T* elements(TensorView view) {
  return static_cast<T*>(view.raw());
}
template <class T>
const T* elements(ConstTensorView view) {
  return static_cast<const T*>(view.raw());
}

template <class T>
const T* elements_or_null(ConstTensorView view) {
  return view.count() == 0 ? nullptr : elements<T>(view);
}

/// How many elements a thread moves at once: a full access of 16 bytes, or one element.
enum class Access { full, single };

/// The access to flat arrays: full where every view starts on a 16-byte boundary, as an empty view
/// does.
template <class... Views>
Access access_to(const Views&... views) {
  const bool is_aligned =
      ((reinterpret_cast<std::uintptr_t>(views.raw()) % kVectorBytes == 0) && ...);
  return is_aligned ? Access::full : Access::single;
}

/// The access to rows of `cols` elements of T, or of a multiple of it: full where every row of
/// every view starts on a 16-byte boundary.
template <class T, class... Views>
Access access_to_rows(std::int64_t cols, const Views&... views) {
  return cols % kFullWidth<T> == 0 ? access_to(views...) : Access::single;
}

/// body.operator()<width>() with the number of elements that one access moves.
template <class T, class Body>
void with_width(Access access, const Body& body) {
  if (access == Access::full) {
    body.template operator()<kFullWidth<T>>();
  } else {
    body.template operator()<1>();
  }
}

/// body.operator()<T>() with the element type of `dtype`, which is f32 or bf16.
template <class Body>
void with_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16) {
    body.template operator()<BFloat>();
  } else {
    body.template operator()<float>();
  }
}

}  // namespace redspine::cuda
