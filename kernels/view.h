// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>

#include "kernels/dtype.h"

namespace weft::kernels {

inline constexpr int kMaxRank = 8;

/// A tensor as a kernel sees it: memory, sizes, strides (in elements), dtype. It owns nothing.
/// A view with `data == nullptr` and no elements to touch means "not given" (`View::none()`).
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> strides{};

  static View none() { return {}; }

  /// A dense row-major view over `data`.
  static View dense(void* data, DType dtype, std::initializer_list<int64_t> sizes) {
    View view{data, dtype, static_cast<int>(sizes.size()), {}, {}};
    std::copy(sizes.begin(), sizes.end(), view.sizes.begin());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      view.strides[d] = stride;
      stride *= view.sizes[d];
    }
    return view;
  }

  /// True where the argument was given.
  explicit operator bool() const { return data != nullptr; }

  int64_t numel() const {
    int64_t n = 1;
    for (size_t d = 0; d < dims(); ++d) n *= sizes[d];
    return n;
  }

  /// Elements from the lowest to the highest address that the view touches; strides are never negative.
  int64_t span() const {
    int64_t last = 0;
    for (size_t d = 0; d < dims(); ++d) last += (sizes[d] - 1) * strides[d];
    return numel() == 0 ? 0 : last + 1;
  }

  /// Row-major without gaps; dimensions of size 1 may have any stride.
  bool is_contiguous() const {
    int64_t expected = 1;
    for (size_t d = dims(); d-- > 0;) {
      if (sizes[d] != 1 && strides[d] != expected) return numel() == 0;
      expected *= sizes[d];
    }
    return true;
  }

  bool same_sizes(const View& other) const {
    if (rank != other.rank) return false;
    for (size_t d = 0; d < dims(); ++d)
      if (sizes[d] != other.sizes[d]) return false;
    return true;
  }

  template <class T>
  T* as() const {
    WEFT_CHECK(dtype == dtype_of<T>, "view: expected ", dtype_of<T>, ", got ", *this);
    return static_cast<T*>(data);
  }

  /// `f32[8,64]`.
  friend std::ostream& operator<<(std::ostream& out, const View& view) {
    out << view.dtype << '[';
    for (size_t d = 0; d < view.dims(); ++d) out << (d ? "," : "") << view.sizes[d];
    return out << ']';
  }

 private:
  size_t dims() const { return static_cast<size_t>(rank); }
};

}  // namespace weft::kernels
