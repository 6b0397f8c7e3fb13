// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/softmax.h"

#include "kernels/cuda/row.cuh"

// Grid, block, ownership: row.cuh. Forward: the maximum, the sum of exponentials, then the output. Backward: the row's
// sum, then the output. Bytes of memory per element of size e: forward 2e, backward 3e; two exponentials in forward.
// 85% of the bandwidth for rows of 128 bytes and more.

namespace weft::kernels::cuda {

namespace {

template <int kGroup, int V, int kUnits, class T>
__global__ void softmax_forward_kernel(T* y, const T* x, int64_t rows, int64_t C, const bool log_of_it) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const Row<kGroup, V, kUnits, T> in(x + row * C, C);
  const RowExponentials<A> e = row_exponentials(in, C);
  const A log_sum = log_of_it ? log(e.sum) : A(0), scale = A(1) / e.sum;
  if (!valid) return;  // whole warps, after the last exchange
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> unit = in.at(k, c);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) {
      const A value = from<A>(unit[i]) - e.maximum;
      out[i] = to<T>(log_of_it ? value - log_sum : exp(value) * scale);
    }
    out.store(y + row * C + c);
  });
}

template <int kGroup, int V, int kUnits, class T>
__global__ void softmax_backward_kernel(T* dx, const T* dy, const T* y, int64_t rows, int64_t C, const bool log_of_it) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const Row<kGroup, V, kUnits, T> dy_row(dy + row * C, C), y_row(y + row * C, C);
  A sum = 0;
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> dy_unit = dy_row.at(k, c), y_unit = y_row.at(k, c);
    for (int i = 0; i < V; ++i) sum += log_of_it ? from<A>(dy_unit[i]) : from<A>(dy_unit[i]) * from<A>(y_unit[i]);
  });
  sum = G::sum(sum);
  if (!valid) return;  // whole warps, after the last exchange
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> dy_unit = dy_row.at(k, c), y_unit = y_row.at(k, c);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(dy_unit[i]), p = from<A>(y_unit[i]);
      out[i] = to<T>(log_of_it ? d - exp(p) * sum : p * (d - sum));
    }
    out.store(dx + row * C + c);
  });
}

int64_t rows_of(const char* name, const View& y, const View& x) {
  WEFT_CHECK(x.rank >= 1 && x.is_contiguous() && y.is_contiguous() && y.same_sizes(x) && y.dtype == x.dtype, name,
             ": expected contiguous tensors of equal sizes and dtype, got ", y, " and ", x);
  return x.numel() == 0 ? 0 : x.numel() / x.sizes[x.rank - 1];
}

}  // namespace

void softmax_forward(const Queue& queue, const View& y, const View& x, bool log) {
  const int64_t rows = rows_of("softmax_forward", y, x);
  if (rows == 0) return;
  const int64_t C = x.sizes[x.rank - 1];
  with_dtype<float, bf16, f16, double>(x.dtype, "softmax_forward", [&]<class T>() {
    with_row_shape<T>(C, {y.data, x.data}, [&]<int kGroup, int V, int kUnits>() {
      using G = RowGroup<kGroup>;
      launch(queue, "softmax_forward", G::grid(rows), dim3(G::kThreads), 0,
             &softmax_forward_kernel<kGroup, V, kUnits, T>, static_cast<T*>(y.data), static_cast<const T*>(x.data),
             rows, C, log);
    });
  });
}

void softmax_backward(const Queue& queue, const View& dx, const View& dy, const View& y, bool log) {
  const int64_t rows = rows_of("softmax_backward", dx, y);
  WEFT_CHECK(dy.is_contiguous() && dy.same_sizes(y), "softmax_backward: expected dy like ", y, ", got ", dy);
  if (rows == 0) return;
  const int64_t C = y.sizes[y.rank - 1];
  with_dtype<float, bf16, f16, double>(y.dtype, "softmax_backward", [&]<class T>() {
    with_row_shape<T>(C, {dx.data, dy.data, y.data}, [&]<int kGroup, int V, int kUnits>() {
      using G = RowGroup<kGroup>;
      launch(queue, "softmax_backward", G::grid(rows), dim3(G::kThreads), 0,
             &softmax_backward_kernel<kGroup, V, kUnits, T>, static_cast<T*>(dx.data), static_cast<const T*>(dy.data),
             static_cast<const T*>(y.data), rows, C, log);
    });
  });
}

}  // namespace weft::kernels::cuda
