// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/row.cuh"
#include "kernels/runtime/allocator.h"

// Norms of rows: layer norm (centred) and RMS norm (not centred), one set of kernels for both.
//
// Forward: a group of threads per row as in row.cuh. With a residual, x + residual is also stored; it stays in
// registers if the row does. Backward, rows in registers: a block processes `per_block` rows, group by group; each lane
// accumulates dweight and dbias of its columns in registers. At the end the groups of the block add their accumulators
// in shared memory, in order, and a last launch adds the blocks' parts. dy and x are read once. Backward, other rows:
// one kernel for dx; another reads dy and x again for the sums: block of 32 columns x 8 rows. Blocks and chunks do not
// depend on the GPU: no atomics, bit-identical results in every run. Weights and biases are loaded from L1 in vectors;
// single-element loads would take longer than the memory traffic.
//
// Bytes per element of size e: forward 2e (4e with a residual), backward 3e (4e with a gradient to add to; +2e if rows
// do not stay in registers); 7 and 14 flops. 85% of the bandwidth forward, 60% and more backward (two row sums separate
// loads and stores).

namespace weft::kernels::cuda {

/// a + b, never fused with a multiplication in a: bit-identical to two separate kernels.
__device__ inline float plain_sum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double plain_sum(double a, double b) { return __dadd_rn(a, b); }

/// The tensors of a forward; absent tensors are nullptr. R, Y: the types of the residual and of y, 16 bits or T.
template <class T, class R = T, class Y = T>
struct RowNormForward {
  using A = Accumulate<T>;
  Y* y;
  A* mean;  // centred only
  A* invstd;
  T* sum;  // x + residual
  const T* x;
  const R* residual;
  const A* weight;
  const A* bias;
  A eps;
};

template <bool kCentred, int kGroup, int V, int kUnits, class T, class R, class Y>
__global__ void row_norm_forward_kernel(const RowNormForward<T, R, Y> n, int64_t rows, int64_t C) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const int64_t row = G::row();
  if (row >= rows) return;  // whole warps: a group that needs barriers is the block
  Row<kGroup, V, kUnits, T> in(n.x + row * C, C);
  A first = kCentred ? from<A>(n.x[row * C]) : A(0);
  if (kCentred && n.residual != nullptr) first = from<A>(to<T>(first + from<A>(n.residual[row * C])));
  if (n.residual != nullptr) {
    T* const sum = n.sum + row * C;
    const Row<kGroup, V, kUnits, R> other(n.residual + row * C, C);
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      Vec<T, V> unit = in.at(k, c);
      const Vec<R, V> addend = other.at(k, c);
      for (int i = 0; i < V; ++i) unit[i] = to<T>(from<A>(unit[i]) + from<A>(addend[i]));
      unit.store(sum + c);
      in.replace(k, unit);
    });
    in.now_at(sum);
  }
  // The mean is center + rest: element - center is nearly exact, and rest is small compared with the row's deviation.
  A center = 0, rest = 0, squares = 0;
  if constexpr (kCentred) {
    for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
      const Vec<T, V> unit = in.at(k, c);
      for (int i = 0; i < V; ++i) center += from<A>(unit[i]) - first;
    });
    center = first + G::sum(center) / static_cast<A>(C);
  }
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> unit = in.at(k, c);
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(unit[i]) - center;
      if constexpr (kCentred) rest += d;
      squares += d * d;
    }
  });
  A variance = G::sum(squares) / static_cast<A>(C);
  if constexpr (kCentred) {
    rest = G::sum(rest) / static_cast<A>(C);
    variance -= rest * rest;
    if (variance < A(0)) variance = A(0);  // NaN passes
  }
  const A invstd = A(1) / sqrt(variance + n.eps);
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> unit = in.at(k, c);
    Vec<A, V> weight, bias;
    if (n.weight != nullptr) weight = Vec<A, V>::load(n.weight + c);
    if (n.bias != nullptr) bias = Vec<A, V>::load(n.bias + c);
    Vec<Y, V> out;
    for (int i = 0; i < V; ++i) {
      A value = ((from<A>(unit[i]) - center) - rest) * invstd;
      if (n.weight != nullptr) value *= weight[i];
      if (n.bias != nullptr) value += bias[i];
      out[i] = to<Y>(value);
    }
    out.store(n.y + row * C + c);
  });
  if (G::lane() == 0) {
    if constexpr (kCentred) n.mean[row] = center + rest;
    n.invstd[row] = invstd;
  }
}

template <class T>
struct RowNormBackward {
  using A = Accumulate<T>;
  T* dx;
  A* partial_dweight;  // [blocks or chunks, C]; nullptr: no sums
  A* partial_dbias;
  const T* dy;
  const T* x;
  const T* dx_in;  // added to dx
  const A* weight;
  const A* mean;  // centred only
  const A* invstd;
};

/// dx = invstd (g - mean(g) - xhat mean(g xhat)) + dx_in, g = dy weight; without mean(g) if not centred. If kSums, adds
/// this row to the lane's accumulators of dweight and dbias (kUnits * V each).
template <bool kCentred, bool kSums, int kGroup, int V, int kUnits, class T>
__device__ __forceinline__ void row_gradient(const RowNormBackward<T>& n, int64_t row, int64_t C,
                                             Accumulate<T>* dweight, Accumulate<T>* dbias) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  const Row<kGroup, V, kUnits, T> dy_row(n.dy + row * C, C), x_row(n.x + row * C, C);
  const A mean = kCentred ? n.mean[row] : A(0), invstd = n.invstd[row];
  A sum = 0, sum_xhat = 0;
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> dy = dy_row.at(k, c), x = x_row.at(k, c);
    Vec<A, V> weight;
    if (n.weight != nullptr) weight = Vec<A, V>::load(n.weight + c);
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(dy[i]), g = n.weight != nullptr ? d * weight[i] : d;
      const A xhat = (from<A>(x[i]) - mean) * invstd;
      sum += g;
      sum_xhat += g * xhat;
      if constexpr (kSums) {
        dweight[k * V + i] += d * xhat;
        if constexpr (kCentred) dbias[k * V + i] += d;
      }
    }
  });
  sum = kCentred ? G::sum(sum) / static_cast<A>(C) : A(0);
  sum_xhat = G::sum(sum_xhat) / static_cast<A>(C);
  for_units<kGroup, V, kUnits>(C, [&](int k, int64_t c) {
    const Vec<T, V> dy = dy_row.at(k, c), x = x_row.at(k, c);
    Vec<T, V> addend, out;
    Vec<A, V> weight;
    if (n.dx_in != nullptr) addend = Vec<T, V>::load(n.dx_in + row * C + c);
    if (n.weight != nullptr) weight = Vec<A, V>::load(n.weight + c);
    for (int i = 0; i < V; ++i) {
      const A d = from<A>(dy[i]), g = n.weight != nullptr ? d * weight[i] : d;
      out[i] = to<T>(invstd * (g - sum - (from<A>(x[i]) - mean) * invstd * sum_xhat));
      if (n.dx_in != nullptr) out[i] = to<T>(plain_sum(from<A>(out[i]), from<A>(addend[i])));
    }
    out.store(n.dx + row * C + c);
  });
}

/// Rows in registers: computes dx and the block's partial sums; layer norm has twice as many.
template <bool kCentred, int kGroup, int V, int kUnits, class T>
__global__ void __launch_bounds__(128, kCentred ? 2 : 3)
    row_norm_backward_kernel(const RowNormBackward<T> n, int64_t rows, int64_t C, int64_t per_block) {
  using A = Accumulate<T>;
  using G = RowGroup<kGroup>;
  constexpr int kOwn = kUnits * V;
  __shared__ A shared[kCentred ? 2 : 1][kGroup * kOwn];
  A dweight[kOwn], dbias[kOwn];
  WEFT_UNROLL
  for (int i = 0; i < kOwn; ++i) dweight[i] = dbias[i] = A(0);
  const int64_t begin = blockIdx.x * per_block, end = begin + per_block < rows ? begin + per_block : rows;
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  for (int64_t row = begin + group; row < end; row += G::kRows)
    row_gradient<kCentred, true, kGroup, V, kUnits>(n, row, C, dweight, dbias);
  if (n.partial_dweight == nullptr) return;  // uniform over all threads
  for (int turn = 0; turn < G::kRows; ++turn) {
    __syncthreads();
    if (group != turn) continue;
    WEFT_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int at = i * kGroup + G::lane();
      shared[0][at] = turn == 0 ? dweight[i] : shared[0][at] + dweight[i];
      if constexpr (kCentred) shared[1][at] = turn == 0 ? dbias[i] : shared[1][at] + dbias[i];
    }
  }
  __syncthreads();
  for (int64_t c = threadIdx.x; c < C; c += G::kThreads) {
    const int unit = static_cast<int>(c) / V, i = static_cast<int>(c) % V;
    const int at = (unit / kGroup * V + i) * kGroup + unit % kGroup;
    n.partial_dweight[blockIdx.x * C + c] = shared[0][at];
    if constexpr (kCentred) n.partial_dbias[blockIdx.x * C + c] = shared[1][at];
  }
}

/// Other rows: computes dx only.
template <bool kCentred, int kGroup, int V, class T>
__global__ void row_norm_dx_kernel(const RowNormBackward<T> n, int64_t rows, int64_t C) {
  const int64_t row = RowGroup<kGroup>::row();
  if (row >= rows) return;  // whole warps: a group that needs barriers is the block
  row_gradient<kCentred, false, kGroup, V, 0>(n, row, C, nullptr, nullptr);
}

inline constexpr int kSumColumns = 32, kSumRows = 8;

/// Other rows: computes the sums of chunk blockIdx.y.
template <bool kCentred, class T>
__global__ void row_norm_sums_kernel(const RowNormBackward<T> n, int64_t rows, int64_t C, int64_t per_chunk) {
  using A = Accumulate<T>;
  __shared__ A shared[2][kSumRows][kSumColumns];
  const int column = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kSumColumns + column;
  const int64_t begin = blockIdx.y * per_chunk, end = begin + per_chunk < rows ? begin + per_chunk : rows;
  A dweight = 0, dbias = 0;
  if (c < C) {
#pragma unroll 4
    for (int64_t m = begin + first; m < end; m += kSumRows) {
      const A d = from<A>(n.dy[m * C + c]);
      dbias += d;
      dweight += d * (from<A>(n.x[m * C + c]) - (kCentred ? n.mean[m] : A(0))) * n.invstd[m];
    }
  }
  shared[0][first][column] = dweight;
  shared[1][first][column] = dbias;
  __syncthreads();
  if (first == 0 && c < C) {
    for (int r = 1; r < kSumRows; ++r) {
      dweight += shared[0][r][column];
      dbias += shared[1][r][column];
    }
    n.partial_dweight[blockIdx.y * C + c] = dweight;
    n.partial_dbias[blockIdx.y * C + c] = dbias;
  }
}

inline constexpr int kFinishRows = 32;

/// dweight and dbias (each optional) = sums of `parts` rows of the partial sums: 32 columns x 32 rows of threads.
template <class A>
__global__ void row_norm_finish_kernel(A* dweight, A* dbias, const A* partial_dweight, const A* partial_dbias,
                                       int64_t C, int64_t parts) {
  __shared__ A shared[2][kFinishRows][kSumColumns];
  const int column = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kSumColumns + column;
  A sum[2] = {};
  if (c < C) {
#pragma unroll 4
    for (int64_t part = first; part < parts; part += kFinishRows) {
      sum[0] += partial_dweight[part * C + c];
      if (dbias != nullptr) sum[1] += partial_dbias[part * C + c];
    }
  }
  shared[0][first][column] = sum[0];
  shared[1][first][column] = sum[1];
  __syncthreads();
  if (first != 0 || c >= C) return;
  for (int r = 1; r < kFinishRows; ++r) {
    sum[0] += shared[0][r][column];
    sum[1] += shared[1][r][column];
  }
  if (dweight != nullptr) dweight[c] = sum[0];
  if (dbias != nullptr) dbias[c] = sum[1];
}

/// `beside_f32`: `like` may have 16 bits beside an x of f32.
inline void check_rows(const char* name, const View& x, const View& like, bool beside_f32 = false) {
  const bool low = beside_f32 && x.dtype == DType::f32 && (like.dtype == DType::bf16 || like.dtype == DType::f16);
  WEFT_CHECK(x.rank == 2 && x.is_contiguous() && like.is_contiguous() && like.same_sizes(x) &&
                 (like.dtype == x.dtype || low),
             name, ": expected contiguous [M, C] of one dtype", beside_f32 ? ", or 16 bits beside f32" : "", ", got ", x,
             " and ", like);
}

template <bool kCentred, class T, class R, class Y>
void row_norm_forward(const Queue& queue, const char* name, const RowNormForward<T, R, Y>& n, int64_t rows, int64_t C) {
  with_row_shape<T>(C, {n.y, n.x, n.sum, n.residual, n.weight, n.bias}, [&]<int kGroup, int V, int kUnits>() {
    using G = RowGroup<kGroup>;
    launch(queue, name, G::grid(rows), dim3(G::kThreads), 0,
           &row_norm_forward_kernel<kCentred, kGroup, V, kUnits, T, R, Y>, n, rows, C);
  });
}

/// Computes dx, and dweight and dbias if given. `n` has no partial sums yet.
template <bool kCentred, class T>
void row_norm_backward(const Queue& queue, const char* name, RowNormBackward<T> n, Accumulate<T>* dweight,
                       Accumulate<T>* dbias, int64_t rows, int64_t C) {
  using A = Accumulate<T>;
  const bool sums = dweight != nullptr || dbias != nullptr;
  const int64_t tiles = (C + kSumColumns - 1) / kSumColumns;
  const auto share_out = [&](int64_t wanted, int64_t& per, int64_t& parts) {
    per = std::max<int64_t>((rows + wanted - 1) / wanted, 1);
    parts = std::max<int64_t>((rows + per - 1) / per, 1);
  };
  with_row_shape<T>(C, {n.dx, n.dy, n.x, n.dx_in, n.weight}, [&]<int kGroup, int V, int kUnits>() {
    using G = RowGroup<kGroup>;
    int64_t per = 0, parts = 0;
    if constexpr (kUnits > 0)  // three blocks per SM of an H200
      share_out(std::clamp<int64_t>(rows / (G::kRows * 4), 1, 396), per, parts);
    else
      share_out(std::clamp<int64_t>(512 / tiles, 1, std::max<int64_t>(rows / (kSumRows * 8), 1)), per, parts);
    const Workspace partial(queue, static_cast<size_t>(sums ? 2 * parts * C : 1) * sizeof(A), name);
    if (sums) {
      n.partial_dweight = partial.template as<A>();
      n.partial_dbias = n.partial_dweight + parts * C;
    }
    if constexpr (kUnits > 0) {
      launch(queue, name, dim3(static_cast<unsigned>(parts)), dim3(G::kThreads), 0,
             &row_norm_backward_kernel<kCentred, kGroup, V, kUnits, T>, n, rows, C, per);
    } else {
      launch(queue, name, G::grid(rows), dim3(G::kThreads), 0, &row_norm_dx_kernel<kCentred, kGroup, V, T>, n, rows, C);
      if (sums)
        launch(queue, name, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts)),
               dim3(kSumColumns, kSumRows), 0, &row_norm_sums_kernel<kCentred, T>, n, rows, C, per);
    }
    if (sums)
      launch(queue, name, dim3(static_cast<unsigned>(tiles)), dim3(kSumColumns, kFinishRows), 0,
             &row_norm_finish_kernel<A>, dweight, dbias, static_cast<const A*>(n.partial_dweight),
             static_cast<const A*>(n.partial_dbias), C, parts);
  });
}

}  // namespace weft::kernels::cuda
