// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/gemm.cuh"
#include "kernels/cuda/gemm/matmul_call.cuh"
#include "kernels/cuda/gemm/split_sum.cuh"

namespace weft::kernels::cuda {

/// y[z] = a[z] @ b[z] as operands of the GEMM main loops. Slice z is a batch element or, with split-K, a slice of the
/// only batch element, stored to plane z of a workspace.
template <class T, Major major_a, Major major_b>
struct MatmulProblem {
  static constexpr bool kChannels = major_a == Major::depth && major_b == Major::depth;  // a 1x1 convolution
  using Slice = GemmSlice<MatrixOperand<T, major_a>, MatrixOperand<T, major_b>, RowsOut>;

  MatrixOperand<T, major_a> a;
  MatrixOperand<T, major_b> b;
  int64_t pitch_a, pitch_b, pitch_y;  ///< elements from slice to slice
  int64_t pitch_row;                  ///< elements from row to row of y
  int m, n, k, splits, depth;         ///< depth: k per split-K slice
  Epilogue<T> epilogue;

  __device__ Slice slice(int z) const {
    Slice slice{a, b, {z * pitch_y, pitch_row, 0}, m, n, 0, k};
    if (splits > 1) {
      slice.k_begin = min(k, z * depth);
      slice.k_end = min(k, (z + 1) * depth);
      (major_a == Major::depth ? slice.a.columns : slice.a.lines) = slice.k_end;
      (major_b == Major::depth ? slice.b.columns : slice.b.lines) = slice.k_end;
    } else {
      slice.a.data += z * pitch_a;
      slice.b.data += z * pitch_b;
    }
    return slice;
  }
};

/// A problem with sums of a's rows: `row_sums` stores element m of slice z as z * (a's rows) + m.
template <class T>
struct RowSumsProblem : MatmulProblem<T, Major::rows, Major::rows> {
  Epilogue<T> row_sums;
};

/// A view's matrix as an operand: rows x K elements along dimensions `row_dim` and `depth_dim`.
template <class T, Major major>
MatrixOperand<T, major> matrix_operand(const View& view, int row_dim, int depth_dim) {
  const int line_dim = major == Major::depth ? row_dim : depth_dim, along_dim = row_dim + depth_dim - line_dim;
  const int64_t pitch = view.strides[line_dim], columns = view.sizes[along_dim];
  const bool vector = allows_vector_load<T>(view.data, pitch) && allows_vector_load<T>(view.data, view.strides[0]) &&
                      allows_vector_load<T>(nullptr, columns);
  return {static_cast<const T*>(view.data), pitch, static_cast<int>(view.sizes[line_dim]), static_cast<int>(columns),
          vector};
}

/// Checks and runs a call without row sums, on an engine if any accepts the call. `name`: the contract's name, for
/// messages. Defined in matmul.cu.
void run_matmul(const Queue& queue, const char* name, const MatmulCall& call);

template <class T>
Epilogue<T> matmul_epilogue(const MatmulCall& call) {
  if (call.channels) return call.channels->on<T>(call.y, call.y.sizes[2]);
  const int64_t pitch = y_pitch(call.y);
  const auto aligned = [&](const View& view) { return !view || allows_vector_store(view, pitch); };
  Epilogue<T> epilogue{call.y.data,
                       call.bias.data,
                       static_cast<Accumulate<T>>(call.alpha),
                       call.y.dtype != dtype_of<T>,
                       call.bias.dtype != dtype_of<T>,
                       call.grad == Grad::accumulate,
                       aligned(call.y) && aligned(call.residual) && aligned(call.pre) && aligned(call.saved) &&
                           call.y.strides[0] % 4 == 0};
  epilogue.activation = call.activation;
  epilogue.residual = call.residual.data;
  epilogue.pre = call.pre.data;
  epilogue.saved = call.saved.data;
  return epilogue;
}

/// The epilogue of the sums of a's rows.
template <class T>
Epilogue<T> row_sums_epilogue(const MatmulCall& call) {
  return {call.row_sums.data, nullptr, 1, call.row_sums.dtype != dtype_of<T>, false, false, false};
}

/// The operands must have the layouts major_a and major_b.
template <class T, Major major_a, Major major_b, class Problem = MatmulProblem<T, major_a, major_b>>
void matmul_as(const Queue& queue, const MatmulCall& call) {
  constexpr bool kSumsRows = requires(Problem p) { p.row_sums; };
  const View &y = call.y, &a = call.a, &b = call.b;
  const int64_t batch = y.sizes[0], m = y.sizes[1], n = y.sizes[2], k = a.sizes[2];
  Problem problem{};
  problem.a = matrix_operand<T, major_a>(a, 1, 2);
  problem.b = matrix_operand<T, major_b>(b, 2, 1);
  problem.pitch_a = a.strides[0];
  problem.pitch_b = b.strides[0];
  problem.pitch_y = y.strides[0];
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  const Epilogue<T> epilogue = matmul_epilogue<T>(call);
  constexpr bool kAlongK = major_a == Major::depth;
  const TileSize alone = choose_tile<T>(m, n, k, batch, kAlongK);
  const SplitPlan split = batch == 1 ? choose_split<T>(m, n, k, 1, kAlongK) : SplitPlan{};
  if (!split_pays<T>(split, alone, m, n, k)) {
    problem.splits = 1;
    problem.epilogue = epilogue;
    problem.pitch_row = y_pitch(y);
    if (call.channels && call.channels->moments) call.channels->moments->take(problem.epilogue, tile_rows(alone));
    if constexpr (kSumsRows) problem.row_sums = row_sums_epilogue<T>(call);
    launch_gemm<T>(queue, "matmul", alone, problem, m, n, batch);
    return;
  }
  problem.depth = static_cast<int>(split.depth);
  problem.splits = static_cast<int>(split.splits);
  problem.pitch_y = m * n;
  problem.pitch_row = n;
  const int64_t rows = kSumsRows ? m : 0;
  const Workspace partial(queue, problem.splits * (m * n + rows) * sizeof(Accumulate<T>), "matmul");
  problem.epilogue = partial_sums_epilogue<T>(partial.data(), n);
  SplitVector<T> beside;
  if constexpr (kSumsRows) {
    Accumulate<T>* const sums = partial.as<Accumulate<T>>() + problem.splits * m * n;
    problem.row_sums = {sums, nullptr, 1, true, false, false, false};
    beside = {row_sums_epilogue<T>(call), sums, static_cast<int>(m)};
  }
  launch_gemm<T>(queue, "matmul", split.size, problem, m, n, problem.splits);
  split_sum<T>(queue, "matmul_split_sum", epilogue, partial.as<Accumulate<T>>(), m * n, n, problem.splits, beside,
               y_pitch(y));
}

/// The matmul for one element type. Defined in matmul_<dtype>.cu, one file per type to keep compile times short.
template <class T>
void matmul_of(const Queue& queue, const MatmulCall& call);

/// Like matmul_of, on wgmma: bf16, f16, and f32 as tf32 if both operands are along k. Returns false if the device has
/// no wgmma, or TMA or wgmma cannot read the operands' layout. Defined in matmul_<dtype>_sm90.cu.
template <class T>
bool matmul_wgmma(const Queue& queue, const MatmulCall& call);

/// The matmul with sums of a's rows. a is dense along its rows, b along its columns (both Major::rows). Defined in the
/// same file as matmul_of.
template <class T>
void row_sums_matmul_of(const Queue& queue, const MatmulCall& call);

/// Like row_sums_matmul_of, on wgmma, for bf16 and f16.
template <class T>
bool row_sums_matmul_wgmma(const Queue& queue, const MatmulCall& call);

/// The body of row_sums_matmul_of.
template <class T>
void row_sums_matmul(const Queue& queue, const MatmulCall& call) {
  matmul_as<T, Major::rows, Major::rows, RowSumsProblem<T>>(queue, call);
}

/// The body of matmul_of: one kernel per pair of layouts of a and b.
template <class T>
void matmul_by_layout(const Queue& queue, const MatmulCall& call) {
  const bool a_along_k = call.a.strides[2] == 1, b_along_k = call.b.strides[1] == 1 && call.b.strides[2] != 1;
  constexpr Major depth = Major::depth, rows = Major::rows;
  WEFT_CHECK(!call.channels || (a_along_k && b_along_k), "matmul: expected a and b of a convolution along k, got ",
             call.a, " and ", call.b);
  if (a_along_k && b_along_k)
    matmul_as<T, depth, depth>(queue, call);
  else if (a_along_k)
    matmul_as<T, depth, rows>(queue, call);
  else if (b_along_k)
    matmul_as<T, rows, depth>(queue, call);
  else
    matmul_as<T, rows, rows>(queue, call);
}

}  // namespace weft::kernels::cuda
