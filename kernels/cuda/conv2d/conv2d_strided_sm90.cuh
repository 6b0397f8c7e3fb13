// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/cuda/conv2d/conv2d_phase.cuh"
#include "kernels/cuda/conv2d/conv2d_sm90.cuh"

// The input's gradient of a strided convolution on the main loop of gemm_wgmma.cuh: a convolution of stride 1 for each
// phase (conv2d_phase.cuh), each a slice of one launch. Row m of a phase is its pixel (n, h / stride, w / stride); tap
// r = first + i step reads dy at p = origin + h / stride - i dilation / gcd. So TMA's im2col windows begin at the
// lowest p, and tap i has offset (count - 1 - i) dilation / gcd. Pixels of one phase are not contiguous in dx: lanes
// store 16 bytes at a time (ScatteredRows).
//
// Phases with the most taps come first. A phase without taps (three of four for 1 x 1 filters) is all zeros; the
// producer's idle warps store the zeros while the other phases are multiplied. For 1 x 1 filters the input's gradient
// is bound by the bytes of dx, three quarters of which are such zeros. If a gradient is added (dx_in), such a phase is
// a slice with no K steps.

namespace weft::kernels::cuda {

template <class T>
struct PhaseSource {
  static constexpr bool kScattered = true, kChannels = false, kPingPong = true;
  static constexpr ptx::Along kAlongA = ptx::Along::depth, kAlongB = ptx::Along::rows;
  static constexpr int kMostPhases = ScatteredRows::kMostSlices;

  struct Phase {
    int steps;             ///< K steps of 64 filters, over all taps
    Divider taps_w;        ///< taps in a row
    int first_r, first_s;  ///< r and s of tap i = 0
    int last_h, last_w;    ///< offset of tap i = 0 from the lowest p and q
  };
  TensorMap pixels[kMostPhases];  ///< im2col of dy
  TensorMap filters;              ///< w as [O, R S, C], boxes of 64 filters x 1 tap x 64 channels
  FilterPositions positions[kMostPhases];
  Phase phases[kMostPhases];
  Divider chunks;                    ///< K steps per tap
  int width;                         ///< S
  int step_r, step_s, tap_h, tap_w;  ///< distance from tap i to i + 1: in the filter, and backwards in dy
  int first_zeros, end_zeros;        ///< phases that are stored as zeros
  int zeros;                         ///< 16-byte segments in such a phase
  Divider runs;                      ///< 16-byte segments per pixel

  struct Range {
    int begin, end;
  };
  __device__ Range range(int z) const { return {0, phases[z].steps}; }

  struct Tile {
    const PhaseSource& source;
    const Phase& phase;
    int first_n, z;
    FilterPositions::Corner corner;  ///< window of the tile's first position

    struct Tap {
      int i, j, k;  ///< row and column among the phase's taps, first filter
    };
    __device__ __forceinline__ Tap tap(int step) const {
      int j = source.chunks.split(step);
      const int i = phase.taps_w.split(j);
      return {i, j, step * kWgmmaDepth<T>};
    }
    __device__ __forceinline__ void load_a(void* chunk, ptx::Barrier* full, int, int step) const {
      const Tap at = tap(step);
      ptx::tma_load_im2col(chunk, source.pixels[z], full, at.k, corner.w, corner.h, corner.n,
                           static_cast<uint16_t>(phase.last_w - at.j * source.tap_w),
                           static_cast<uint16_t>(phase.last_h - at.i * source.tap_h));
    }
    __device__ __forceinline__ void load_b(void* chunk, ptx::Barrier* full, int i, int step, uint16_t blocks) const {
      const Tap at = tap(step);
      const int c = first_n + i * kChunkRows;
      const int line = (phase.first_r + at.i * source.step_r) * source.width + phase.first_s + at.j * source.step_s;
      if (blocks == 0)
        ptx::tma_load(chunk, source.filters, full, c, line, at.k);
      else
        ptx::tma_load_multicast(chunk, source.filters, full, blocks, c, line, at.k);
    }
  };
  __device__ Tile tile(int first_m, int first_n, int z) const {
    return {*this, phases[z], first_n, z, positions[z].corner(first_m)};
  }

  __device__ void prefetch() const { ptx::prefetch_tensor_map(filters); }

  template <class Epilogue>
  __device__ __forceinline__ void beside(const Epilogue& epilogue, int thread) const {
    if (first_zeros == end_zeros) return;
    const ScatteredRows& to = epilogue.scatter;
    for (int64_t i = int64_t{96} * blockIdx.x + thread; i < zeros; i += int64_t{96} * gridDim.x) {
      int run = static_cast<int>(i), w = runs.split(run);
      const int n = to.per_image.split(w), h = to.per_row.split(w) * to.stride_h;
      w *= to.stride_w;
      const int64_t pixel = (static_cast<int64_t>(n) * to.height + h) * to.width + w;
      T* const at = static_cast<T*>(epilogue.to.y) + pixel * epilogue.pitch_row + run * 8;
      WEFT_UNROLL_BY(1)
      for (int z = first_zeros; z < end_zeros; ++z) {
        const int row = to.rows[z], column = to.columns[z];
        if (h + row < to.height && w + column < to.width)
          ptx::st16(at + (row * to.width + column) * epilogue.pitch_row, {});
      }
    }
  }
};

template <class T>
bool conv2d_backward_strided_input_on_wgmma(const Queue& queue, const View& dx, const View& dy, const View& w,
                                            const View& dx_in, const Conv2dShape& shape) {
  constexpr const char* kName = "conv2d_backward_input_sm90";
  using Source = PhaseSource<T>;
  const int64_t count = shape.stride.h * shape.stride.w, runs = shape.C / 8;
  if (!conv2d_fits_wgmma(queue, shape, dy.dtype) || count > Source::kMostPhases ||
      reinterpret_cast<uintptr_t>(w.data) % 16 != 0 ||
      (reinterpret_cast<uintptr_t>(dx.data) | reinterpret_cast<uintptr_t>(dx_in.data)) % 16 != 0)
    return false;
  const int64_t rows = (shape.H + shape.stride.h - 1) / shape.stride.h;
  const int64_t columns = (shape.W + shape.stride.w - 1) / shape.stride.w;
  const int64_t m = shape.N * rows * columns, n = shape.C, chunks = (shape.O + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>;
  if (m * runs >= (int64_t{1} << 31) - 1024) return false;
  const PhaseAxis axis_h(shape.H, shape.R, shape.stride.h, shape.padding.h, shape.dilation.h);
  const PhaseAxis axis_w(shape.W, shape.S, shape.stride.w, shape.padding.w, shape.dilation.w);

  struct Work {
    int row, column;
    PhaseTaps h, w;
  };
  std::array<Work, Source::kMostPhases> works{};
  for (int i = 0; i < count; ++i) {
    const int row = i / static_cast<int>(shape.stride.w), column = i % static_cast<int>(shape.stride.w);
    works[static_cast<size_t>(i)] = {row, column, axis_h.phase(row), axis_w.phase(column)};
  }
  std::stable_sort(works.begin(), works.begin() + count,
                   [](const Work& a, const Work& b) { return a.h.count * a.w.count > b.h.count * b.w.count; });

  WgmmaGemm<T, Source> gemm{};
  Source& source = gemm.source;
  ScatteredRows& scatter = gemm.epilogue.scatter;
  std::vector<WindowWalk> walks;  // one per phase with taps; these come first
  int64_t steps = 0;
  for (int i = 0; i < count; ++i) {
    const Work& work = works[static_cast<size_t>(i)];
    const int last_h = std::max(work.h.count - 1, 0) * -axis_h.tap,
              last_w = std::max(work.w.count - 1, 0) * -axis_w.tap;
    const int lower_h = work.h.origin - last_h, lower_w = work.w.origin - last_w;
    const WindowWalk walk(dy, rows, columns, {lower_h, lower_w});
    source.phases[i] = {static_cast<int>(work.h.count * work.w.count * chunks),
                        Divider(work.w.count),
                        work.h.first,
                        work.w.first,
                        last_h,
                        last_w};
    source.positions[i] = walk.positions;
    scatter.rows[i] = work.row;
    scatter.columns[i] = work.column;
    if (source.phases[i].steps == 0) continue;
    steps += source.phases[i].steps;
    if (!walk.fits() || last_h > kMostOffset || last_w > kMostOffset) return false;
    walks.push_back(walk);
  }
  const auto with_taps = static_cast<int64_t>(walks.size()), slices = dx_in ? count : with_taps;
  // With more columns a tile of 128 x 256 loads fewer bytes from L2.
  const WgmmaPlan plan = wgmma_plan(m, n, (steps + slices - 1) / slices, slices, {.ping_pong = n <= 128});
  const WgmmaBoxRows box(plan, Source::kAlongA, Source::kAlongB);
  for (size_t i = 0; i < walks.size(); ++i) source.pixels[i] = walks[i].map(kName, box.a);
  source.filters = filter_map(kName, w, shape, box.b);
  source.chunks = Divider(chunks);
  source.width = static_cast<int>(shape.S);
  source.step_r = axis_h.step;
  source.step_s = axis_w.step;
  source.tap_h = -axis_h.tap;
  source.tap_w = -axis_w.tap;
  source.first_zeros = static_cast<int>(slices);
  source.end_zeros = static_cast<int>(count);
  source.zeros = static_cast<int>(m * runs);
  source.runs = Divider(runs);
  gemm.epilogue.to = {dx.data, nullptr, 1, false, false, false, true};
  gemm.epilogue.to.residual = dx_in.data;
  gemm.epilogue.pitch_row = n;
  gemm.epilogue.m = static_cast<int>(m);
  gemm.epilogue.n = static_cast<int>(n);
  gemm.epilogue.pairs = true;
  scatter.per_image = Divider(rows * columns);
  scatter.per_row = Divider(columns);
  scatter.stride_h = static_cast<int>(shape.stride.h);
  scatter.stride_w = static_cast<int>(shape.stride.w);
  scatter.height = static_cast<int>(shape.H);
  scatter.width = static_cast<int>(shape.W);
  launch_wgmma(queue, kName, plan, gemm, m, n, slices);
  return true;
}

}  // namespace weft::kernels::cuda
