// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv2d/conv2d_phase.cuh"
#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/gemm/gemm.cuh"

// dx[n, h, w, c] = sum over (r, s, o) of dy[n, p, q, o] w[o, r, s, c]. p stride = h + padding - r dilation (q
// likewise): one GEMM with m = (n, h, w), k = (r, s, o), columns = the group's input channels.
//
// With a stride, the pixels are sorted into phases (conv2d_phase.cuh).
//
// a: the im2col matrix of dy (PixelOperand); b: w, line (r, s, o) = C/groups neighbours (FilterOperand). One launch: a
// slice is (phase, group). Flops: 2 N P Q O R S C / groups, as forward. Limit and bytes: as forward.

namespace weft::kernels::cuda {

/// Rows of one phase: (n, h / stride, w / stride) in dx.
struct PhaseOut {
  Divider positions, positions_w;
  int64_t image_pitch, base;
  int pitch, phase_h, phase_w, stride_h, stride_w, height, width, first_n;

  __device__ int64_t row(int m) const {
    const int n = positions.split(m);
    const int h = positions_w.split(m) * stride_h + phase_h, w = m * stride_w + phase_w;
    if (h >= height || w >= width) return -1;
    return base + n * image_pitch + (h * width + w) * pitch;
  }
};

template <class T>
struct Conv2dBackwardInputProblem {
  static constexpr bool kChannels = false;
  using Slice = GemmSlice<PixelOperand<T, Major::depth>, FilterOperand<T>, PhaseOut>;

  PixelOperand<T, Major::depth> pixels;
  FilterOperand<T> filters;
  PhaseOut out;
  PhaseAxis axis_h, axis_w;
  int groups, m, n;
  Epilogue<T> epilogue;

  __device__ Slice slice(int z) const {
    const int group = z % groups, phase = z / groups;
    const int phase_h = phase / axis_w.stride, phase_w = phase % axis_w.stride;
    const PhaseTaps taps_h = axis_h.phase(phase_h), taps_w = axis_w.phase(phase_w);
    const int group_filters = filters.filters.divisor();
    const int k = taps_h.count * taps_w.count * group_filters;
    Slice slice{pixels, filters, out, m, n, 0, k};
    slice.a.data += group * group_filters;
    slice.a.columns = k;
    slice.a.taps_w = taps_w.count;
    slice.a.origin_h = taps_h.origin;
    slice.a.origin_w = taps_w.origin;
    slice.b.data += group * group_filters * filters.filter_pitch;
    slice.b.lines = k;
    slice.b.taps_w = taps_w.count;
    slice.b.first_r = taps_h.first;
    slice.b.first_s = taps_w.first;
    slice.out.phase_h = phase_h;
    slice.out.phase_w = phase_w;
    slice.out.base = group * n;
    return slice;
  }
};

template <>
bool conv2d_backward_input_wgmma<bf16>(const Queue&, const View&, const View&, const View&, const View&,
                                       const Conv2dShape&);
template <>
bool conv2d_backward_input_wgmma<f16>(const Queue&, const View&, const View&, const View&, const View&,
                                      const Conv2dShape&);

template <class T>
void conv2d_backward_input_gemm(const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
                                const Conv2dShape& shape) {
  if constexpr (sizeof(T) == 2)
    if (conv2d_backward_input_wgmma<T>(queue, dx, dy, w, dx_in, shape)) return;
  const auto [stride_h, stride_w] = shape.stride;
  const int64_t rows = (shape.H + stride_h - 1) / stride_h, columns = (shape.W + stride_w - 1) / stride_w;
  const int64_t m = shape.N * rows * columns, n = shape.group_C;
  Conv2dBackwardInputProblem<T> problem{};
  problem.axis_h = PhaseAxis(shape.H, shape.R, stride_h, shape.padding.h, shape.dilation.h);
  problem.axis_w = PhaseAxis(shape.W, shape.S, stride_w, shape.padding.w, shape.dilation.w);
  auto& pixels = problem.pixels;
  pixels.data = static_cast<const T*>(dy.data);
  pixels.image_pitch = shape.P * shape.Q * shape.O;
  pixels.height = static_cast<int>(shape.P);
  pixels.width = static_cast<int>(shape.Q);
  pixels.pitch = static_cast<int>(shape.O);
  pixels.lines = static_cast<int>(m);
  pixels.positions = Divider(rows * columns);
  pixels.positions_w = Divider(columns);
  pixels.channels = Divider(shape.group_O);
  pixels.step_h = pixels.step_w = 1;
  pixels.tap_h = problem.axis_h.tap;
  pixels.tap_w = problem.axis_w.tap;
  pixels.vector = allows_vector_load<T>(dy.data, shape.group_O);
  auto& filters = problem.filters;
  filters.data = static_cast<const T*>(w.data);
  filters.filter_pitch = shape.R * shape.S * shape.group_C;
  filters.columns = static_cast<int>(n);
  filters.filters = Divider(shape.group_O);
  filters.step_r = problem.axis_h.step;
  filters.step_s = problem.axis_w.step;
  filters.width = static_cast<int>(shape.S);
  const int64_t group_weights = shape.group_O * filters.filter_pitch;  // line offsets fit into an int
  filters.next_tap = static_cast<int>(problem.axis_w.step * n - group_weights);
  filters.vector = allows_vector_load<T>(w.data, n) && group_weights < int64_t{1} << 31;
  problem.out.positions = pixels.positions;
  problem.out.positions_w = pixels.positions_w;
  problem.out.image_pitch = shape.H * shape.W * shape.C;
  problem.out.pitch = static_cast<int>(shape.C);
  problem.out.stride_h = static_cast<int>(stride_h);
  problem.out.stride_w = static_cast<int>(stride_w);
  problem.out.height = static_cast<int>(shape.H);
  problem.out.width = static_cast<int>(shape.W);
  problem.groups = static_cast<int>(shape.groups);
  problem.m = static_cast<int>(m);
  problem.n = static_cast<int>(n);
  problem.epilogue = {dx.data,
                      nullptr,
                      1,
                      false,
                      false,
                      false,
                      allows_vector_store(dx, n) && (!dx_in || allows_vector_store(dx_in, n))};
  problem.epilogue.residual = dx_in.data;
  const int64_t slices = stride_h * stride_w * shape.groups;
  launch_gemm<T>(queue, "conv2d_backward_input",
                 choose_tile<T>(m, n, shape.R * shape.S * shape.group_O / (stride_h * stride_w), slices,
                                /*a_along_k=*/true),
                 problem, m, n, slices);
}

template void conv2d_backward_input_gemm<float>(const Queue&, const View&, const View&, const View&, const View&,
                                                const Conv2dShape&);
template void conv2d_backward_input_gemm<double>(const Queue&, const View&, const View&, const View&, const View&,
                                                 const Conv2dShape&);
template void conv2d_backward_input_gemm<bf16>(const Queue&, const View&, const View&, const View&, const View&,
                                               const Conv2dShape&);
template void conv2d_backward_input_gemm<f16>(const Queue&, const View&, const View&, const View&, const View&,
                                              const Conv2dShape&);

}  // namespace weft::kernels::cuda
