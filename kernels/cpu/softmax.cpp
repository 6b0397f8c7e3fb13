// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {
namespace {

/// Calls body(row's first element, C) for each row of the last dimension, from several threads; `make_body` gives each
/// thread its own.
template <class MakeBody>
void for_rows(const View& x, const MakeBody& make_body) {
  const int64_t C = x.rank ? x.sizes[x.rank - 1] : 1;
  if (x.numel() == 0) return;
  parallel_for(x.numel() / C, C * 8, [&](int64_t begin, int64_t end) {
    auto body = make_body(C);
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
    for_rows(x, [=](int64_t columns) {
      // The row is converted once and stays in the cache in S.
      return [=, row = std::vector<S>(static_cast<size_t>(columns))](int64_t start, int64_t C) mutable {
        S largest = -std::numeric_limits<S>::infinity();
#pragma omp simd reduction(max : largest)
        for (int64_t c = 0; c < C; ++c) {
          row[c] = static_cast<S>(in[start + c]);
          largest = std::max(largest, row[c]);
        }
        if (largest == -std::numeric_limits<S>::infinity()) largest = 0;
        S sum = 0;
        if (log) {
#pragma omp simd reduction(+ : sum)
          for (int64_t c = 0; c < C; ++c) sum += VectorMath::exp(row[c] - largest);
          const S shift = largest + std::log(sum);
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c) out[start + c] = static_cast<T>(row[c] - shift);
        } else {
#pragma omp simd reduction(+ : sum)
          for (int64_t c = 0; c < C; ++c) {
            row[c] = VectorMath::exp(row[c] - largest);
            sum += row[c];
          }
          const S scale = 1 / sum;
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c) out[start + c] = static_cast<T>(row[c] * scale);
        }
      };
    });
  });
}

void softmax_backward(const Queue&, const View& dx, const View& dy, const View& y, bool log) {
  check_dense("softmax_backward", dx, dy);
  with_dtype<float, double, bf16, f16>(y.dtype, "softmax_backward", [&]<class T>() {
    using S = Accumulate<T>;
    T* din = dx.as<T>();
    const T *gradient = dy.as<T>(), *out = y.as<T>();
    for_rows(y, [=](int64_t) {
      return [=](int64_t start, int64_t C) {
        const T *dy_row = gradient + start, *y_row = out + start;
        T* dx_row = din + start;
        S sum = 0;
        if (log) {
#pragma omp simd reduction(+ : sum)
          for (int64_t c = 0; c < C; ++c) sum += static_cast<S>(dy_row[c]);
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c)
            dx_row[c] = static_cast<T>(static_cast<S>(dy_row[c]) - VectorMath::exp(static_cast<S>(y_row[c])) * sum);
        } else {
#pragma omp simd reduction(+ : sum)
          for (int64_t c = 0; c < C; ++c) sum += static_cast<S>(dy_row[c]) * static_cast<S>(y_row[c]);
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c)
            dx_row[c] = static_cast<T>(static_cast<S>(y_row[c]) * (static_cast<S>(dy_row[c]) - sum));
        }
      };
    });
  });
}

}  // namespace weft::kernels::cpu
