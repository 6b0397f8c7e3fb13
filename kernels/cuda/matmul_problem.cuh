// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/matmul_call.cuh"
#include "kernels/cuda/split_sum.cuh"

namespace weft::kernels::WEFT_DEVICE {

/// y[z] = a[z] @ b[z] as operands of the GEMM main loops. Slice z is a batch entry or, when k is shared out, a share
/// of the only entry, whose sums go to plane z of a workspace.
template <class T, Major major_a, Major major_b>
struct MatmulProblem {
  static constexpr bool kChannels = major_a == Major::depth && major_b == Major::depth;  // a 1x1 convolution
  using Slice = GemmSlice<MatrixOperand<T, major_a>, MatrixOperand<T, major_b>, RowsOut>;

  MatrixOperand<T, major_a> a;
  MatrixOperand<T, major_b> b;
  int64_t pitch_a, pitch_b, pitch_y;  ///< elements from slice to slice
  int m, n, k, splits, depth;         ///< depth: of one share
  Epilogue<T> epilogue;

  __device__ Slice slice(int z) const {
    Slice slice{a, b, {z * pitch_y, n, 0}, m, n, 0, k};
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

/// A view's matrix as an operand: rows x depth elements, `row_dim` and `depth_dim` being its dimensions.
template <class T, Major major>
MatrixOperand<T, major> matrix_operand(const View& view, int row_dim, int depth_dim) {
  const int line_dim = major == Major::depth ? row_dim : depth_dim, along_dim = row_dim + depth_dim - line_dim;
  const int64_t pitch = view.strides[line_dim], columns = view.sizes[along_dim];
  const bool vector = allows_vector_load<T>(view.data, pitch) && allows_vector_load<T>(view.data, view.strides[0]) &&
                      allows_vector_load<T>(nullptr, columns);
  return {static_cast<const T*>(view.data), pitch, static_cast<int>(view.sizes[line_dim]), static_cast<int>(columns),
          vector};
}

template <class T>
Epilogue<T> matmul_epilogue(const MatmulCall& call) {
  if (call.channels) return call.channels->on<T>(call.y, call.y.sizes[2]);
  const auto aligned = [&](const View& view) { return !view || allows_vector_store(view, call.y.sizes[2]); };
  Epilogue<T> epilogue{call.y.data,
                       call.bias.data,
                       static_cast<Accumulate<T>>(call.alpha),
                       call.y.dtype != dtype_of<T>,
                       call.bias.dtype != dtype_of<T>,
                       call.grad == Grad::accumulate,
                       aligned(call.y) && aligned(call.residual) && aligned(call.pre) && call.y.strides[0] % 4 == 0};
  epilogue.activation = call.activation;
  epilogue.residual = call.residual.data;
  epilogue.pre = call.pre.data;
  return epilogue;
}

template <class T, Major major_a, Major major_b>
void matmul_as(const Queue& queue, const MatmulCall& call) {
  const View &y = call.y, &a = call.a, &b = call.b;
  const int64_t batch = y.sizes[0], m = y.sizes[1], n = y.sizes[2], k = a.sizes[2];
  MatmulProblem<T, major_a, major_b> problem{};
  problem.a = matrix_operand<T, major_a>(a, 1, 2);
  problem.b = matrix_operand<T, major_b>(b, 2, 1);
  problem.pitch_a = a.strides[0];
  problem.pitch_b = b.strides[0];
  problem.pitch_y = y.strides[0];
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  const Epilogue<T> epilogue = matmul_epilogue<T>(call);
  const TileSize alone = choose_tile<T>(m, n, batch);
  const TileSize shared_out = choose_tile<T>(m, n, batch, 1, 1);
  const int64_t splits = batch == 1 ? choose_splits(shared_out, m, n, k, 1) : 1;
  if (splits < 4) {  // fewer shares do not pay for the second pass
    problem.splits = 1;
    problem.epilogue = epilogue;
    if (call.channels && call.channels->moments) call.channels->moments->take(problem.epilogue, tile_edge(alone));
    launch_gemm<T>(queue, "matmul", alone, problem, m, n, batch);
    return;
  }
  problem.depth = static_cast<int>(split_depth(k, splits));
  problem.splits = static_cast<int>((k + problem.depth - 1) / problem.depth);
  problem.pitch_y = m * n;
  const Workspace partial(queue, problem.splits * m * n * sizeof(Accumulate<T>), "matmul");
  problem.epilogue = partial_sums_epilogue<T>(partial.data(), n);
  launch_gemm<T>(queue, "matmul", shared_out, problem, m, n, problem.splits);
  split_sum<T>(queue, "matmul_split_sum", epilogue, partial.as<Accumulate<T>>(), m * n, n, problem.splits);
}

/// The product for one element type. Defined in matmul_<dtype>.cu, one file per type to keep compile times short.
template <class T>
void matmul_of(const Queue& queue, const MatmulCall& call);

/// As matmul_of, on wgmma, for bf16 and f16; false where the device has none or TMA cannot read the operands. Defined
/// in matmul_<dtype>_sm90.cu.
template <class T>
bool matmul_wgmma(const Queue& queue, const MatmulCall& call);

/// The body of matmul_of: one kernel for each of the ways in which a and b may lie.
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

}  // namespace weft::kernels::WEFT_DEVICE
