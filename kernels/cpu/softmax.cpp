// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {
namespace {

/// Calls body(first, last, C) with ranges of rows of the last dimension, from several threads.
template <class Body>
void for_rows(const View& x, const Body& body) {
  const int64_t C = x.rank ? x.sizes[x.rank - 1] : 1;
  if (x.numel() == 0) return;
  parallel_for(x.numel() / C, C * 8, [&](int64_t begin, int64_t end) { body(begin, end, C); });
}

/// One row; `row` has room for C values of S: the input is converted once and stays in the cache.
template <class T, class S>
void forward_row(T* y, const T* x, S* row, int64_t C, bool log) {
  S largest = -std::numeric_limits<S>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t c = 0; c < C; ++c) {
    row[c] = static_cast<S>(x[c]);
    largest = largest < row[c] ? row[c] : largest;
  }
  if (largest == -std::numeric_limits<S>::infinity()) largest = 0;
  S sum = 0;
  if (log) {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; ++c) sum += VectorMath::exp(row[c] - largest);
    const S log_sum = std::log(sum);  // apart from the maximum: their sum rounds at the input's size
#pragma GCC ivdep
    for (int64_t c = 0; c < C; ++c) y[c] = static_cast<T>((row[c] - largest) - log_sum);
  } else {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; ++c) {
      row[c] = VectorMath::exp(row[c] - largest);
      sum += row[c];
    }
    const S scale = 1 / sum;
#pragma GCC ivdep
    for (int64_t c = 0; c < C; ++c) y[c] = static_cast<T>(row[c] * scale);
  }
}

template <class T, class S>
void backward_row(T* dx, const T* dy, const T* y, int64_t C, bool log) {
  S sum = 0;
  if (log) {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; ++c) sum += static_cast<S>(dy[c]);
#pragma GCC ivdep
    for (int64_t c = 0; c < C; ++c)
      dx[c] = static_cast<T>(static_cast<S>(dy[c]) - VectorMath::exp(static_cast<S>(y[c])) * sum);
  } else {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < C; ++c) sum += static_cast<S>(dy[c]) * static_cast<S>(y[c]);
#pragma GCC ivdep
    for (int64_t c = 0; c < C; ++c) dx[c] = static_cast<T>(static_cast<S>(y[c]) * (static_cast<S>(dy[c]) - sum));
  }
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
    for_rows(x, [&](int64_t begin, int64_t end, int64_t C) {
      std::vector<S> row(static_cast<size_t>(C));
      for (int64_t r = begin; r < end; ++r) forward_row<T, S>(out + r * C, in + r * C, row.data(), C, log);
    });
  });
}

void softmax_backward(const Queue&, const View& dx, const View& dy, const View& y, bool log) {
  check_dense("softmax_backward", dx, dy);
  with_dtype<float, double, bf16, f16>(y.dtype, "softmax_backward", [&]<class T>() {
    using S = Accumulate<T>;
    T* din = dx.as<T>();
    const T *gradient = dy.as<T>(), *out = y.as<T>();
    for_rows(y, [&](int64_t begin, int64_t end, int64_t C) {
      for (int64_t r = begin; r < end; ++r) backward_row<T, S>(din + r * C, gradient + r * C, out + r * C, C, log);
    });
  });
}

}  // namespace weft::kernels::cpu
