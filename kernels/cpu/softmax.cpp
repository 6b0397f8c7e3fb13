// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

/// Calls body(row, C) for each row of the last dimension, from several threads.
template <class Body>
void for_rows(const View& x, const Body& body) {
  const int64_t C = x.rank ? x.sizes[x.rank - 1] : 1;
  if (x.numel() == 0) return;
  parallel_for(x.numel() / C, C * 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row * C, C);
  });
}

void check_dense(const char* op, const View& y, const View& x) {
  WEFT_CHECK(x.is_contiguous() && y.is_contiguous() && x.same_sizes(y) && x.dtype == y.dtype, op,
             ": expected dense tensors alike, got ", y, " and ", x);
}

}  // namespace

void softmax_forward(const Queue&, const View& y, const View& x, bool log) {
  check_dense("softmax_forward", y, x);
  with_dtype<float, double, bf16, f16>(x.dtype, "softmax_forward", [&]<class T>() {
    using S = Accumulate<T>;
    T* out = y.as<T>();
    const T* in = x.as<T>();
    for_rows(x, [&](int64_t start, int64_t C) {
      S largest = -std::numeric_limits<S>::infinity();
      for (int64_t c = 0; c < C; ++c) largest = std::max(largest, static_cast<S>(in[start + c]));
      if (largest == -std::numeric_limits<S>::infinity()) largest = 0;
      S sum = 0;
      for (int64_t c = 0; c < C; ++c) sum += std::exp(static_cast<S>(in[start + c]) - largest);
      const S shift = largest + std::log(sum), scale = 1 / sum;
      for (int64_t c = 0; c < C; ++c) {
        const S value = static_cast<S>(in[start + c]);
        out[start + c] = static_cast<T>(log ? value - shift : std::exp(value - largest) * scale);
      }
    });
  });
}

void softmax_backward(const Queue&, const View& dx, const View& dy, const View& y, bool log) {
  check_dense("softmax_backward", dx, dy);
  with_dtype<float, double, bf16, f16>(y.dtype, "softmax_backward", [&]<class T>() {
    using S = Accumulate<T>;
    T* din = dx.as<T>();
    const T *gradient = dy.as<T>(), *out = y.as<T>();
    for_rows(y, [&](int64_t start, int64_t C) {
      S sum = 0;
      for (int64_t c = 0; c < C; ++c) {
        const S g = static_cast<S>(gradient[start + c]);
        sum += log ? g : g * static_cast<S>(out[start + c]);
      }
      for (int64_t c = 0; c < C; ++c) {
        const S g = static_cast<S>(gradient[start + c]), value = static_cast<S>(out[start + c]);
        din[start + c] = static_cast<T>(log ? g - std::exp(value) * sum : value * (g - sum));
      }
    });
  });
}

}  // namespace weft::kernels::cpu
