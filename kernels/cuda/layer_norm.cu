// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"

#include "kernels/allocator.h"
#include "kernels/cuda/row.cuh"

// Forward and dx: rows to groups of threads as in row.cuh. Forward takes three passes over the row (mean, squared
// deviations, output), the last two from L1 or L2; dx two (its two sums, output).
// dweight, dbias: block of 32 columns x 8 rows; a thread owns one channel and every 8th row of its block's chunk,
//   shared: [8][32] sums, twice; grid x = tiles of 32 channels, y = chunks of rows; a last launch adds the chunks in
//   order.
// Bytes per element of size e: forward 2e, backward 5e (x and dy twice); 8 flops. 80% of the bandwidth.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kColumns = 32, kRows = 8;

template <int kGroup, int V, class T>
__global__ void layer_norm_forward_kernel(T* y, Accumulate<T>* mean_out, Accumulate<T>* invstd_out, const T* x,
                                          const Accumulate<T>* weight, const Accumulate<T>* bias, int64_t rows,
                                          int64_t C, const Accumulate<T> eps) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const T* from_x = x + row * C;
  A sum = 0, squares = 0;
  for (int64_t c = G::lane() * V; c < C; c += kGroup * V) {
    const Vec<T, V> unit = Vec<T, V>::load(from_x + c);
    for (int i = 0; i < V; ++i) sum += from<A>(unit[i]);
  }
  const A mean = G::sum(sum) / static_cast<A>(C);
  for (int64_t c = G::lane() * V; c < C; c += kGroup * V) {
    const Vec<T, V> unit = Vec<T, V>::load(from_x + c);
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(unit[i]) - mean;
      squares += d * d;
    }
  }
  const A invstd = A(1) / sqrt(G::sum(squares) / static_cast<A>(C) + eps);
  for (int64_t c = G::lane() * V; valid && c < C; c += kGroup * V) {
    const Vec<T, V> unit = Vec<T, V>::load(from_x + c);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) {
      A value = (from<A>(unit[i]) - mean) * invstd;
      if (weight != nullptr) value *= weight[c + i];
      if (bias != nullptr) value += bias[c + i];
      out[i] = to<T>(value);
    }
    out.store(y + row * C + c);
  }
  if (valid && G::lane() == 0) {
    mean_out[row] = mean;
    invstd_out[row] = invstd;
  }
}

/// dx = invstd (g - mean(g) - xhat mean(g xhat)), g = dy weight.
template <int kGroup, int V, class T>
__global__ void layer_norm_dx_kernel(T* dx, const T* dy, const T* x, const Accumulate<T>* weight,
                                     const Accumulate<T>* mean_in, const Accumulate<T>* invstd_in, int64_t rows,
                                     int64_t C) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const bool valid = G::row() < rows;
  const int64_t row = valid ? G::row() : rows - 1;
  const A mean = mean_in[row], invstd = invstd_in[row];
  A sum = 0, sum_xhat = 0;
  for (int64_t c = G::lane() * V; c < C; c += kGroup * V) {
    const Vec<T, V> dy_unit = Vec<T, V>::load(dy + row * C + c), x_unit = Vec<T, V>::load(x + row * C + c);
    for (int i = 0; i < V; ++i) {
      const A g = from<A>(dy_unit[i]) * (weight != nullptr ? weight[c + i] : A(1));
      sum += g;
      sum_xhat += g * (from<A>(x_unit[i]) - mean) * invstd;
    }
  }
  sum = G::sum(sum) / static_cast<A>(C);
  sum_xhat = G::sum(sum_xhat) / static_cast<A>(C);
  for (int64_t c = G::lane() * V; valid && c < C; c += kGroup * V) {
    const Vec<T, V> dy_unit = Vec<T, V>::load(dy + row * C + c), x_unit = Vec<T, V>::load(x + row * C + c);
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) {
      const A g = from<A>(dy_unit[i]) * (weight != nullptr ? weight[c + i] : A(1));
      out[i] = to<T>(invstd * (g - sum - (from<A>(x_unit[i]) - mean) * invstd * sum_xhat));
    }
    out.store(dx + row * C + c);
  }
}

template <class T>
__global__ void layer_norm_sums_kernel(Accumulate<T>* partial_dy, Accumulate<T>* partial_dyx, const T* dy, const T* x,
                                       const Accumulate<T>* mean, const Accumulate<T>* invstd, int64_t rows, int64_t C,
                                       int64_t per_chunk) {
  using A = Accumulate<T>;
  __shared__ A shared_dy[kRows][kColumns], shared_dyx[kRows][kColumns];
  const int column = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  const int64_t begin = blockIdx.y * per_chunk, end = begin + per_chunk < rows ? begin + per_chunk : rows;
  A sum_dy = 0, sum_dyx = 0;
  if (c < C) {
    for (int64_t m = begin + first; m < end; m += kRows) {
      const A d = from<A>(dy[m * C + c]);
      sum_dy += d;
      sum_dyx += d * (from<A>(x[m * C + c]) - mean[m]) * invstd[m];
    }
  }
  shared_dy[first][column] = sum_dy;
  shared_dyx[first][column] = sum_dyx;
  __syncthreads();
  if (first == 0 && c < C) {
    for (int r = 1; r < kRows; ++r) {
      sum_dy += shared_dy[r][column];
      sum_dyx += shared_dyx[r][column];
    }
    partial_dy[blockIdx.y * C + c] = sum_dy;
    partial_dyx[blockIdx.y * C + c] = sum_dyx;
  }
}

template <class A>
__global__ void layer_norm_finish_kernel(A* dweight, A* dbias, const A* partial_dy, const A* partial_dyx, int64_t C,
                                         int64_t chunks) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= C) return;
  A dy = 0, dyx = 0;
#pragma unroll 4
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    dy += partial_dy[chunk * C + c];
    dyx += partial_dyx[chunk * C + c];
  }
  if (dweight != nullptr) dweight[c] = dyx;
  if (dbias != nullptr) dbias[c] = dy;
}

template <class A>
A* optional(const View& view) {
  return view ? view.as<A>() : nullptr;
}

void check(const char* name, const View& x, const View& like) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous() && like.is_contiguous() && like.same_sizes(x) && like.dtype == x.dtype,
             name, ": expected contiguous [M, C] of one dtype, got ", x, " and ", like);
}

}  // namespace

void layer_norm_forward(const Queue& queue, const View& y, const View& mean, const View& invstd, const View& x,
                        const View& weight, const View& bias, double eps) {
  check("layer_norm_forward", x, y);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (rows == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "layer_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    with_row_shape<T>(C, {y.data, x.data}, [&]<int kGroup, int V>() {
      using G = RowGroup<kGroup>;
      launch(queue, "layer_norm_forward", G::grid(rows), dim3(G::kThreads), 0, &layer_norm_forward_kernel<kGroup, V, T>,
             y.as<T>(), mean.as<A>(), invstd.as<A>(), static_cast<const T*>(x.data), optional<A>(weight),
             optional<A>(bias), rows, C, static_cast<A>(eps));
    });
  });
}

void layer_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd) {
  check("layer_norm_backward", x, dy);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "layer_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T* dy_data = static_cast<const T*>(dy.data);
    const T* x_data = static_cast<const T*>(x.data);
    const A* mean_data = optional<A>(mean);
    const A* invstd_data = optional<A>(invstd);
    if (dx && rows > 0) {
      with_row_shape<T>(C, {dx.data, dy.data, x.data}, [&]<int kGroup, int V>() {
        using G = RowGroup<kGroup>;
        launch(queue, "layer_norm_backward (dx)", G::grid(rows), dim3(G::kThreads), 0,
               &layer_norm_dx_kernel<kGroup, V, T>, dx.as<T>(), dy_data, x_data, optional<A>(weight), mean_data,
               invstd_data, rows, C);
      });
    }
    if (!dweight && !dbias) return;
    const int64_t tiles = (C + kColumns - 1) / kColumns;
    const int64_t wanted = std::clamp<int64_t>(512 / tiles, 1, std::max<int64_t>(rows / (kRows * 8), 1));
    const int64_t per_chunk = std::max<int64_t>((rows + wanted - 1) / wanted, 1);
    const int64_t chunks = std::max<int64_t>((rows + per_chunk - 1) / per_chunk, 1);
    const Workspace partial(queue, static_cast<size_t>(2 * chunks * C) * sizeof(A), "layer_norm_backward");
    A* partial_dy = partial.template as<A>();
    A* partial_dyx = partial_dy + chunks * C;
    launch(queue, "layer_norm_backward (sums)", dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(chunks)),
           dim3(kColumns, kRows), 0, &layer_norm_sums_kernel<T>, partial_dy, partial_dyx, dy_data, x_data, mean_data,
           invstd_data, rows, C, per_chunk);
    launch(queue, "layer_norm_backward (finish)", dim3(static_cast<unsigned>((C + 127) / 128)), dim3(128), 0,
           &layer_norm_finish_kernel<A>, optional<A>(dweight), optional<A>(dbias), partial_dy, partial_dyx, C, chunks);
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
