// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv2d/conv2d_pixels.cuh"
#include "kernels/cuda/gemm/split_sum.cuh"

// dw[o, r, s, c] = sum over k = (n, p, q) of dy[k, o] pixel(k, (r, s, c)): one GEMM per group, rows = the group's
// filters, columns = (r, s, c). K = N P Q, often a hundred thousand and more, while the result has few tiles.
//
// So K is split: slice (group, share) accumulates its part of K into its own plane of a workspace. split_sum
// (split_sum.cuh) adds the planes in a fixed order. No atomics: bit-identical results in every run.
//
//   k=(n,p,q)  share 0  +----+   +-----------+      plane 0  ---+
//              share 1  | dy |^T | im2col(x) |  ->  plane 1  ---+-->  dw
//              …        +----+   +-----------+      …        ---+
//
// Both operands are laid out along their rows (Major::rows: a line is one k): dy has O neighbours, a pixel C. Flops: as
// forward. Bytes: dy is read once per column tile, x about R S times from L2, and the planes are written and read once.

namespace weft::kernels::cuda {

template <class T>
struct Conv2dBackwardWeightProblem {
  static constexpr bool kChannels = false;
  using Slice = GemmSlice<MatrixOperand<T, Major::rows>, PixelOperand<T, Major::rows>, RowsOut>;

  MatrixOperand<T, Major::rows> gradients;
  PixelOperand<T, Major::rows> pixels;
  int m, n, k, splits, depth;  ///< depth: k per split-K slice
  int64_t plane;               ///< elements of dw
  Epilogue<T> epilogue;

  __device__ Slice slice(int z) const {
    const int group = z / splits, split = z % splits;
    const int64_t first = static_cast<int64_t>(group) * m * n;
    Slice slice{gradients, pixels, {split * plane + first, n, 0}, m, n, split * depth, min(k, (split + 1) * depth)};
    slice.a.data += group * m;
    slice.b.data += group * pixels.channels.divisor();
    slice.a.lines = slice.b.lines = slice.k_end;
    return slice;
  }
};

template <>
bool conv2d_backward_weight_wgmma<bf16>(const Queue&, const View&, const View&, const View&, const Conv2dShape&);
template <>
bool conv2d_backward_weight_wgmma<f16>(const Queue&, const View&, const View&, const View&, const Conv2dShape&);

/// The gradient on mma.sync or CUDA cores; their loads support any strides of x, also a packed stem's windows.
template <class T>
void conv2d_backward_weight_tiles(const Queue& queue, const View& dw, const View& dy, const View& x,
                                  const Conv2dShape& shape) {
  if constexpr (sizeof(T) == 2) {
    if (const PackedStem stem(shape); stem.fits) {
      stem_backward_weight<T>(queue, "conv2d_backward_weight (stem)", dw, x, stem.packing, shape,
                              [&](const View& packed_dw, const View& images) {
                                conv2d_backward_weight_tiles<T>(queue, packed_dw, dy, images, stem.packed);
                                return true;
                              });
      return;
    }
  }
  const int64_t m = shape.group_O, n = shape.R * shape.S * shape.group_C, k = shape.N * shape.P * shape.Q;
  Conv2dBackwardWeightProblem<T> problem{};
  problem.gradients = {static_cast<const T*>(dy.data), shape.O, static_cast<int>(k), static_cast<int>(m),
                       allows_vector_load<T>(dy.data, shape.group_O)};
  problem.pixels = window_pixels<T, Major::rows>(x, shape);
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  problem.plane = shape.groups * m * n;

  const SplitPlan split = choose_split<T>(m, n, k, shape.groups, /*a_along_k=*/false);
  problem.depth = static_cast<int>(split.depth);
  problem.splits = static_cast<int>(split.splits);
  const Epilogue<T> epilogue{dw.data, nullptr, 1, dw.dtype != dtype_of<T>, false, false, allows_vector_store(dw, n)};
  if (problem.splits == 1) {
    problem.epilogue = epilogue;
    launch_gemm<T>(queue, "conv2d_backward_weight", split.size, problem, m, n, shape.groups);
    return;
  }
  const Workspace partial(queue, problem.splits * problem.plane * sizeof(Accumulate<T>), "conv2d_backward_weight");
  problem.epilogue = partial_sums_epilogue<T>(partial.data(), n);
  launch_gemm<T>(queue, "conv2d_backward_weight", split.size, problem, m, n, shape.groups * problem.splits);
  split_sum<T>(queue, "conv2d_backward_weight_sum", epilogue, partial.as<Accumulate<T>>(), problem.plane, n,
               problem.splits);
}

template <class T>
void conv2d_backward_weight_gemm(const Queue& queue, const View& dw, const View& dy, const View& x,
                                 const Conv2dShape& shape) {
  if constexpr (sizeof(T) == 2)
    if (conv2d_backward_weight_wgmma<T>(queue, dw, dy, x, shape)) return;
  conv2d_backward_weight_tiles<T>(queue, dw, dy, x, shape);
}

template void conv2d_backward_weight_gemm<float>(const Queue&, const View&, const View&, const View&,
                                                 const Conv2dShape&);
template void conv2d_backward_weight_gemm<double>(const Queue&, const View&, const View&, const View&,
                                                  const Conv2dShape&);
template void conv2d_backward_weight_gemm<bf16>(const Queue&, const View&, const View&, const View&,
                                                const Conv2dShape&);
template void conv2d_backward_weight_gemm<f16>(const Queue&, const View&, const View&, const View&, const Conv2dShape&);

}  // namespace weft::kernels::cuda
