// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv2d/conv2d_pixels.cuh"

// y = conv2d(x, w) as one GEMM per group: m = (n, p, q), k = (r, s, c), columns = the group's filters.
//
//              k = (r, s, c)                         a: the im2col matrix of x, gathered while it is loaded:
//        +------------------------+    O/groups         a run of 16 bytes is 8 (bf16) channels of one pixel
//        | pixel of position m at | x  +------+      b: w itself, line o = the R S C/groups weights of filter o
//  N P Q | tap (r, s)             |    | w^T  |      y: row m, columns of the group: contiguous
//        +------------------------+    +------+
//
// Flops: 2 N P Q O R S C / groups. Bytes, at least: x, w and y once; a pixel is loaded R S / stride^2 times, all but
// once from L2 or L1. Limit: from about 64 channels that of the main loops (gemm_fma.cuh, gemm_mma.cuh), below that
// memory.

namespace weft::kernels::cuda {

template <class T>
struct Conv2dForwardProblem {
  static constexpr bool kChannels = true;
  using Slice = GemmSlice<PixelOperand<T, Major::depth>, MatrixOperand<T, Major::depth>, RowsOut>;

  PixelOperand<T, Major::depth> pixels;
  MatrixOperand<T, Major::depth> filters;
  int m, n, k;
  int64_t pitch_y;
  Epilogue<T> epilogue;

  __device__ Slice slice(int group) const {
    const int first_filter = group * n;
    Slice slice{pixels, filters, {first_filter, pitch_y, first_filter}, m, n, 0, k};
    slice.a.data += group * pixels.channels.divisor();
    slice.b.data += first_filter * filters.pitch;
    return slice;
  }
};

template <>
bool conv2d_forward_wgmma<float>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                 const Conv2dShape&);
template <>
bool conv2d_forward_wgmma<bf16>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                const Conv2dShape&);
template <>
bool conv2d_forward_wgmma<f16>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                               const Conv2dShape&);

/// The forward on mma.sync or CUDA cores; their loads support any strides of x, also a packed stem's windows.
template <class T>
void conv2d_forward_tiles(const Queue& queue, const View& y, const View& x, const View& w,
                          const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  if constexpr (sizeof(T) == 2) {
    if (const PackedStem stem(shape); stem.fits) {
      stem_forward<T>(queue, "conv2d_forward (stem)", x, w, stem.packing, shape,
                      [&](const View& images, const View& filters) {
                        conv2d_forward_tiles<T>(queue, y, images, filters, epilogue, stem.packed);
                        return true;
                      });
      return;
    }
  }
  const int64_t m = shape.N * shape.P * shape.Q, n = shape.group_O, k = shape.R * shape.S * shape.group_C;
  Conv2dForwardProblem<T> problem{};
  problem.pixels = window_pixels<T, Major::depth>(x, shape);
  problem.filters = {static_cast<const T*>(w.data), k, static_cast<int>(n), static_cast<int>(k),
                     allows_vector_load<T>(w.data, k)};
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.k = static_cast<int>(k);
  problem.pitch_y = shape.O;
  problem.epilogue = epilogue.on<T>(y, n);
  const TileSize tile = choose_tile<T>(m, n, k, shape.groups, /*a_along_k=*/true);
  if (epilogue.moments != nullptr) epilogue.moments->take(problem.epilogue, tile_rows(tile));
  launch_gemm<T>(queue, "conv2d_forward", tile, problem, m, n, shape.groups);
}

template <class T>
void conv2d_forward_gemm(const Queue& queue, const View& y, const View& x, const View& w,
                         const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  if constexpr (!std::is_same_v<T, double>) {
    const bool on_tensor_cores = sizeof(T) == 2 || allow_tf32();
    if (on_tensor_cores && conv2d_forward_wgmma<T>(queue, y, x, w, epilogue, shape)) return;
  }
  conv2d_forward_tiles<T>(queue, y, x, w, epilogue, shape);
}

template void conv2d_forward_gemm<float>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                         const Conv2dShape&);
template void conv2d_forward_gemm<double>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                          const Conv2dShape&);
template void conv2d_forward_gemm<bf16>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                        const Conv2dShape&);
template void conv2d_forward_gemm<f16>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,
                                       const Conv2dShape&);

}  // namespace weft::kernels::cuda
