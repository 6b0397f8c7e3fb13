// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/gemm/gemm_wgmma_launch.cuh"
#include "kernels/cuda/gemm/split_sum.cuh"
#include "kernels/runtime/allocator.h"

// Convolutions on the main loop of gemm_wgmma.cuh. Per filter tap, a TMA load in im2col mode fetches 64 channels of
// the pixel under the tap, for every output position of a tile; padding is filled with zeros. So a
// K step of the im2col matrix is one instruction, and no buffer exists. f32 as tf32 has 32 channels per step, and the
// forward only: there alone both operands are laid out along K.
//
//   direction        rows of a           rows of b   a K step                      loads of a, of b.
//   forward          positions (n,p,q)   o           64 channels c at a tap (r,s)  im2col of x, w[o, tap, c].
//   backward_input   pixels (n,h,w)      c           64 filters o at a tap (r,s)   im2col of dy, w[o, -tap, c].
//   backward_weight  o                   (r,s,c)     64 positions (n,p,q)          dy[position, o], im2col of x.
//
// The input's gradient, for stride 1, is the convolution of dy with the filters rotated by 180 degrees; b is then laid
// out along its rows. With a larger stride there is one such convolution per phase: conv2d_strided_sm90.cuh. The
// weight's gradient has a large K and few results: positions are divided into split-K slices, which split_sum adds. Its
// columns are those of dw, tap by tap, so that a tile reads dy once for several taps. A tile of 64 x 192 covers a
// filter row of three taps with 64 channels and loads 32 KiB from L2; three tiles of 64 x 64 load 48 KiB.

namespace weft::kernels::cuda {

/// Maps position i = (n, y, x) to the corner of the filter's window.
struct FilterPositions {
  Divider per_image, per_row;
  int stride_h, stride_w, lower_h, lower_w;  ///< lower: the first window's corner, minus the padding

  struct Corner {
    int w, h, n;
  };
  __device__ Corner corner(int i) const {
    const int n = per_image.split(i);
    const int y = per_row.split(i);
    return {lower_w + i * stride_w, lower_h + y * stride_h, n};
  }
};

/// The source of the forward and of the input's gradient: accumulates over taps and channels at each position.
template <class T, bool kBackward>
struct WindowSource {
  static constexpr bool kScattered = false, kChannels = !kBackward, kTall = true, kAuxiliary = kBackward;
  static constexpr ptx::Along kAlongA = ptx::Along::depth, kAlongB = kBackward ? ptx::Along::rows : ptx::Along::depth;

  TensorMap pixels, filters;  ///< im2col of x (or dy); w as [O, R S, C], boxes of filters x 1 tap x 128 bytes
  FilterPositions positions;
  Divider chunks, taps_w;  ///< K steps per tap; taps in a row of the filter
  int taps, dilation_h, dilation_w;
  int steps, share;

  struct Range {
    int begin, end;
  };
  __device__ Range range(int z) const { return {z * share, min(steps, (z + 1) * share)}; }

  struct Tile {
    const WindowSource& source;
    int first_n;
    FilterPositions::Corner corner;  ///< window of the tile's first position

    __device__ __forceinline__ void load_a(void* chunk, ptx::Barrier* full, int, int step) const {
      int rest = step;
      const int tap = source.chunks.split(rest);
      int s = tap;
      const int r = source.taps_w.split(s);
      ptx::tma_load_im2col(chunk, source.pixels, full, rest * kWgmmaDepth<T>, corner.w, corner.h, corner.n,
                           static_cast<uint16_t>(s * source.dilation_w), static_cast<uint16_t>(r * source.dilation_h));
    }
    __device__ __forceinline__ void load_b(void* chunk, ptx::Barrier* full, int i, int step, uint16_t blocks) const {
      int rest = step;
      const int tap = source.chunks.split(rest), row = first_n + i * kChunkRows, k = rest * kWgmmaDepth<T>;
      const int c = kBackward ? row : k, o = kBackward ? k : row, at = kBackward ? source.taps - 1 - tap : tap;
      if (blocks == 0)
        ptx::tma_load(chunk, source.filters, full, c, at, o);
      else
        ptx::tma_load_multicast(chunk, source.filters, full, blocks, c, at, o);
    }
  };
  __device__ Tile tile(int first_m, int first_n, int) const { return {*this, first_n, positions.corner(first_m)}; }

  __device__ void prefetch() const {
    ptx::prefetch_tensor_map(pixels);
    ptx::prefetch_tensor_map(filters);
  }
};

/// The source of the weight's gradient: slice z accumulates split-K slice z / slices of the positions. A chunk of 64
/// columns is loaded at one tap; so if C is not a multiple of 64, each tap is a separate slice, z mod slices; else one
/// slice holds all taps.
template <class T>
struct WeightSource {
  static constexpr bool kScattered = false, kChannels = false, kWide = true, kNoMulticast = true;
  static constexpr ptx::Along kAlongA = ptx::Along::rows, kAlongB = ptx::Along::rows;

  TensorMap gradients, pixels;  ///< dy as [positions, O], boxes of 64 x 64; im2col of x
  FilterPositions positions;
  Divider slices, channels, taps_w;
  int taps;  ///< taps per slice
  int dilation_h, dilation_w;
  int steps, share;

  struct Range {
    int begin, end;
  };
  __device__ Range range(int z) const {
    const int split = slices.quotient(z);
    return {split * share, min(steps, (split + 1) * share)};
  }

  struct Tile {
    static constexpr int kMostChunks = 4;
    struct Chunk {
      int c;
      uint16_t offset_w, offset_h;
    };
    const WeightSource& source;
    int first_m;
    Chunk chunks[kMostChunks];

    __device__ __forceinline__ void load_a(void* chunk, ptx::Barrier* full, int i, int step) const {
      ptx::tma_load(chunk, source.gradients, full, first_m + i * kChunkRows, step * kWgmmaDepth<T>);
    }
    __device__ __forceinline__ void load_b(void* chunk, ptx::Barrier* full, int i, int step, uint16_t) const {
      const auto corner = source.positions.corner(step * kWgmmaDepth<T>);
      const Chunk& at = chunks[i];
      ptx::tma_load_im2col(chunk, source.pixels, full, at.c, corner.w, corner.h, corner.n, at.offset_w, at.offset_h);
    }
  };
  __device__ Tile tile(int first_m, int first_n, int z) const {
    Tile tile{*this, first_m, {}};
    slices.split(z);
    WEFT_UNROLL
    for (int i = 0; i < Tile::kMostChunks; ++i) {
      const int column = first_n + i * kChunkRows;
      const int tap = min(channels.quotient(column), taps - 1);  // after the last tap channels start at C: zeros
      int s = z + tap;
      const int r = taps_w.split(s);
      tile.chunks[i] = {column - tap * channels.divisor(), static_cast<uint16_t>(s * dilation_w),
                        static_cast<uint16_t>(r * dilation_h)};
    }
    return tile;
  }

  __device__ void prefetch() const {
    ptx::prefetch_tensor_map(gradients);
    ptx::prefetch_tensor_map(pixels);
  }
};

/// The largest tap offset that CUTLASS uses in im2col loads from images (conv: can_implement), one less than 8 bits can
/// hold.
constexpr int kMostOffset = 254;

/// Whether `elements` elements are a multiple of 16 bytes.
inline bool is_whole_runs(int64_t elements, DType dtype) {
  return elements * static_cast<int64_t>(size_of(dtype)) % 16 == 0;
}

/// The positions of a filter over images, and the im2col map. rows, columns: positions per image.
struct WindowWalk {
  Im2colTensor tensor;  ///< without `pixels`
  FilterPositions positions;

  /// The windows of a convolution over `images`.
  WindowWalk(const View& images, int64_t rows, int64_t columns, const Conv2dShape& shape, Size2d stride, Size2d padding)
      : WindowWalk(images, rows, columns, {-padding.h, -padding.w}, stride,
                   {padding.h - (shape.R - 1) * shape.dilation.h, padding.w - (shape.S - 1) * shape.dilation.w}) {}

  /// rows x columns windows in each image, one pixel apart; the first window's corner is at `lower`.
  WindowWalk(const View& images, int64_t rows, int64_t columns, Size2d lower)
      : WindowWalk(images, rows, columns, lower, {1, 1},
                   {rows + lower.h - images.sizes[1], columns + lower.w - images.sizes[2]}) {}

  WindowWalk(const View& images, int64_t rows, int64_t columns, Size2d lower, Size2d stride, Size2d upper)
      : tensor{images.data,
               images.dtype,
               images.sizes[0],
               images.sizes[1],
               images.sizes[2],
               images.sizes[3],
               static_cast<int>(lower.h),
               static_cast<int>(lower.w),
               static_cast<int>(upper.h),
               static_cast<int>(upper.w),
               static_cast<int>(stride.h),
               static_cast<int>(stride.w),
               wgmma_depth(images.dtype),
               0,
               Swizzle::bytes128,
               {bytes(images, 2), bytes(images, 1), bytes(images, 0)},
               images.dtype == DType::f32},
        positions{Divider(rows * columns),    Divider(columns),          static_cast<int>(stride.h),
                  static_cast<int>(stride.w), static_cast<int>(lower.h), static_cast<int>(lower.w)} {}

  /// Whether TMA's im2col mode supports these windows.
  bool fits() const {
    const auto corner = [](int64_t c) { return c >= -128 && c <= 127; };
    return reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0 && is_whole_runs(tensor.c, tensor.dtype) &&
           corner(tensor.lower_h) && corner(tensor.lower_w) && corner(tensor.upper_h) && corner(tensor.upper_w) &&
           tensor.stride_h <= 8 && tensor.stride_w <= 8;
  }
  /// As above, and whether 8-bit offsets reach all taps.
  bool fits(const Conv2dShape& shape) const {
    return fits() && (shape.R - 1) * shape.dilation.h <= kMostOffset && (shape.S - 1) * shape.dilation.w <= kMostOffset;
  }
  /// The map for loads of `windows` windows.
  TensorMap map(const char* name, int windows) const {
    Im2colTensor load = tensor;
    load.pixels = windows;
    return im2col_map(name, load);
  }

 private:
  static int64_t bytes(const View& images, int dimension) {
    return static_cast<int64_t>(size_of(images.dtype)) * images.strides[dimension];
  }
};

/// w as [O, R S, C] in boxes of `filters` filters x 1 tap x 128 bytes of channels.
inline TensorMap filter_map(const char* name, const View& w, const Conv2dShape& shape, int filters) {
  const int64_t taps = shape.R * shape.S, filter = shape.C * static_cast<int64_t>(size_of(w.dtype));
  return tiled_map(name, {w.data,
                          w.dtype,
                          3,
                          {shape.C, taps, shape.O},
                          {filter, filter * taps},
                          {wgmma_depth(w.dtype), 1, filters},
                          Swizzle::bytes128,
                          w.dtype == DType::f32});
}

inline bool conv2d_fits_wgmma(const Queue& queue, const Conv2dShape& shape, DType dtype) {
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1024;  // the last tile's indices exceed the size
  return has_wgmma(queue) && shape.groups == 1 && is_whole_runs(shape.C, dtype) && is_whole_runs(shape.O, dtype) &&
         !shape.is_empty() && shape.N * shape.P * shape.Q < kLimit && shape.N * shape.H * shape.W < kLimit;
}

/// Forward and backward_input (T of two bytes): m positions, n columns, `depth` channels at each tap.
template <class T, bool kBackward>
bool window_wgmma(const Queue& queue, const char* name, const View& y, const WindowWalk& walk, const View& w,
                  const ChannelEpilogue& channels, const Conv2dShape& shape, int64_t m, int64_t n, int64_t depth) {
  if (!walk.fits(shape) || reinterpret_cast<uintptr_t>(w.data) % 16 != 0) return false;
  const int64_t taps = shape.R * shape.S, chunks = (depth + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>, steps = taps * chunks;
  const WgmmaPlan plan = wgmma_plan(m, n, steps, 1, {.split = true, .be_tall = true});
  using Source = WindowSource<T, kBackward>;
  const WgmmaBoxRows box(plan, Source::kAlongA, Source::kAlongB);
  WgmmaGemm<T, Source> gemm{};
  gemm.source.pixels = walk.map(name, box.a);
  gemm.source.filters = filter_map(name, w, shape, box.b);
  gemm.source.positions = walk.positions;
  gemm.source.chunks = Divider(chunks);
  gemm.source.taps_w = Divider(shape.S);
  gemm.source.taps = static_cast<int>(taps);
  gemm.source.dilation_h = static_cast<int>(shape.dilation.h);
  gemm.source.dilation_w = static_cast<int>(shape.dilation.w);
  gemm.source.steps = static_cast<int>(steps);
  gemm.source.share = plan.share;
  const Epilogue<T> epilogue = channels.on<T>(y, n);
  if (plan.splits == 1) {
    gemm.epilogue = wgmma_epilogue<T, !kBackward>(name, epilogue, m, n, 1, m * n);
    gemm.epilogue.take(channels.moments);
    launch_wgmma(queue, name, plan, gemm, m, n, 1);
    return true;
  }
  const Workspace partial(queue, plan.splits * m * n * sizeof(float), name);
  gemm.epilogue =
      wgmma_epilogue<T, !kBackward>(name, partial_sums_epilogue<T>(partial.data(), n), m, n, plan.splits, m * n);
  launch_wgmma(queue, name, plan, gemm, m, n, plan.splits);
  split_sum<T>(queue, name, epilogue, partial.as<float>(), m * n, n, plan.splits);
  return true;
}

template <class T>
bool conv2d_forward_on_wgmma(const Queue& queue, const View& y, const View& x, const View& w,
                             const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  if (!conv2d_fits_wgmma(queue, shape, x.dtype)) return false;
  const WindowWalk walk(x, shape.P, shape.Q, shape, shape.stride, shape.padding);
  return window_wgmma<T, false>(queue, "conv2d_forward_sm90", y, walk, w, epilogue, shape, shape.N * shape.P * shape.Q,
                                shape.O, shape.C);
}

template <class T>
bool conv2d_backward_input_on_wgmma(const Queue& queue, const View& dx, const View& dy, const View& w,
                                    const View& dx_in, const Conv2dShape& shape) {
  if (!conv2d_fits_wgmma(queue, shape, dy.dtype)) return false;
  const Size2d turned{(shape.R - 1) * shape.dilation.h - shape.padding.h,
                      (shape.S - 1) * shape.dilation.w - shape.padding.w};
  const WindowWalk walk(dy, shape.H, shape.W, shape, shape.stride, turned);
  ChannelEpilogue epilogue;
  epilogue.residual = dx_in;
  return window_wgmma<T, true>(queue, "conv2d_backward_input_sm90", dx, walk, w, epilogue, shape,
                               shape.N * shape.H * shape.W, shape.C, shape.O);
}

template <class T>
bool conv2d_backward_weight_on_wgmma(const Queue& queue, const View& dw, const View& dy, const View& x,
                                     const Conv2dShape& shape) {
  constexpr const char* kName = "conv2d_backward_weight_sm90";
  if (!conv2d_fits_wgmma(queue, shape, x.dtype)) return false;
  const WindowWalk walk(x, shape.P, shape.Q, shape, shape.stride, shape.padding);
  if (!walk.fits(shape) || reinterpret_cast<uintptr_t>(dy.data) % 16 != 0) return false;
  const int64_t taps = shape.R * shape.S, slices = shape.C % kChunkRows == 0 ? 1 : taps;
  const int64_t m = shape.O, n = taps / slices * shape.C, pixels = shape.N * shape.P * shape.Q;
  const int64_t steps = (pixels + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>, plane = m * slices * n;
  WgmmaPlan plan = wgmma_plan(m, n, steps, slices, {.split = true, .be_wide = true});
  plan.cluster = 1;  // a column of tiles would share im2col loads, which have no multicast here
  WgmmaGemm<T, WeightSource<T>> gemm{};
  gemm.source.gradients =
      tiled_map(kName, {dy.data, dy.dtype, 2, {m, pixels}, {2 * m}, {kWgmmaDepth<T>, kChunkRows}, Swizzle::bytes128});
  gemm.source.pixels = walk.map(kName, kChunkRows);
  gemm.source.positions = walk.positions;
  gemm.source.slices = Divider(slices);
  gemm.source.channels = Divider(shape.C);
  gemm.source.taps_w = Divider(shape.S);
  gemm.source.taps = static_cast<int>(taps / slices);
  gemm.source.dilation_h = static_cast<int>(shape.dilation.h);
  gemm.source.dilation_w = static_cast<int>(shape.dilation.w);
  gemm.source.steps = static_cast<int>(steps);
  gemm.source.share = plan.share;
  const Epilogue<T> epilogue{
      dw.data, nullptr, 1, dw.dtype != dtype_of<T>, false, false, reinterpret_cast<uintptr_t>(dw.data) % 16 == 0};
  const Workspace partial(queue, plan.splits == 1 ? 0 : plan.splits * plane * sizeof(float), kName);
  const Epilogue<T> sums = plan.splits == 1 ? epilogue : partial_sums_epilogue<T>(partial.data(), n);
  WgmmaEpilogue<T>& to = gemm.epilogue;
  if (slices == 1) {
    to = wgmma_epilogue<T>(kName, sums, m, n, plan.splits, plane);
  } else {
    to.to = sums;
    to.pitch_z = plane;
    to.pitch_inner = n;
    to.pitch_row = taps * n;
    to.inner = Divider(taps);
    to.m = static_cast<int>(m);
    to.n = static_cast<int>(n);
    to.pairs = reinterpret_cast<uintptr_t>(sums.y) % 8 == 0;  // n is a multiple of 8
  }
  launch_wgmma(queue, kName, plan, gemm, m, n, slices * plan.splits);
  if (plan.splits > 1) split_sum<T>(queue, kName, epilogue, partial.as<float>(), plane, n, plan.splits);
  return true;
}

}  // namespace weft::kernels::cuda
