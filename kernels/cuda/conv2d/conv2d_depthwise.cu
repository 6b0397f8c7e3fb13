// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/gemm/gemm.cuh"
#include "kernels/cuda/gemm/split_sum.cuh"
#include "kernels/cuda/vec.cuh"

// Depthwise convolution: each channel has its own filter (groups == C == O), w [C, R, S, 1].
//
// There is nothing to share between channels, so there is no GEMM: 2 R S flops per element of y and, ideally, a read of
// x and a write of y. Memory-bound for every filter in use; expected share of the memory roofline 70 to 80% for 3
// x 3.
//
// All three kernels: a block of 128 threads owns `vectors` neighbouring vectors of 16 bytes of channels (a power of
// two, at most 32: one warp reads 512 bytes in a row) and thread t vector t mod vectors of position t / vectors, + 128
// / vectors, …

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kTaps = 4;  // taps in a filter row per thread of the weight gradient

struct DepthwiseSizes {
  int H, W, C, R, S, P, Q;
  int stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  int vectors;         ///< channel vectors per block
  int positions;       ///< N P Q, or N H W for the input gradient
  Divider image, row;  ///< positions per image, and per row
};

DepthwiseSizes depthwise_sizes(const Conv2dShape& shape, bool backward_input, int width) {
  const int64_t rows = backward_input ? shape.H : shape.P, columns = backward_input ? shape.W : shape.Q;
  DepthwiseSizes sizes{};
  sizes.H = static_cast<int>(shape.H);
  sizes.W = static_cast<int>(shape.W);
  sizes.C = static_cast<int>(shape.C);
  sizes.R = static_cast<int>(shape.R);
  sizes.S = static_cast<int>(shape.S);
  sizes.P = static_cast<int>(shape.P);
  sizes.Q = static_cast<int>(shape.Q);
  sizes.stride_h = static_cast<int>(shape.stride.h);
  sizes.stride_w = static_cast<int>(shape.stride.w);
  sizes.padding_h = static_cast<int>(shape.padding.h);
  sizes.padding_w = static_cast<int>(shape.padding.w);
  sizes.dilation_h = static_cast<int>(shape.dilation.h);
  sizes.dilation_w = static_cast<int>(shape.dilation.w);
  const int64_t needed = (shape.C + width - 1) / width;
  sizes.vectors = 1;
  while (sizes.vectors < needed && sizes.vectors < 32) sizes.vectors *= 2;
  sizes.positions = static_cast<int>(shape.N * rows * columns);
  sizes.image = Divider(rows * columns);
  sizes.row = Divider(columns);
  return sizes;
}

/// Calls body with the elements of T in 16 bytes, or 1 if channels or alignment do not allow 16-byte accesses.
template <class T, class Body>
void with_width(int64_t channels, std::initializer_list<const void*> pointers, Body&& body) {
  constexpr int kWidth = 16 / sizeof(T);
  bool aligned = channels % kWidth == 0;
  for (const void* p : pointers) aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  if (aligned)
    body.template operator()<kWidth>();
  else
    body.template operator()<1>();
}

}  // namespace

/// Forward: epilogue to y, in = x, position (p, q) reads pixel (p stride - padding + r dilation, …).
/// Input gradient: to dx, in = dy, position (h, w) reads (h + padding - r dilation) / stride if this is an integer.
/// Shared memory: the block's filters as [tap][channel], so that a tap's channels are one 16-byte read.
/// Grid: x over positions (grid-stride), y over channels. Doubles need more than the 64 registers that 8 blocks leave.
template <class T, int kWidth, bool backward_input>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 8 ? 4 : 8)
    depthwise_kernel(const Epilogue<T> epilogue, const T* in, const T* w, const DepthwiseSizes sizes) {
  using Sum = Accumulate<T>;
  using Channels = Vec<T, kWidth>;
  T* const filters = dynamic_shared<T>();
  const int channels = sizes.vectors * kWidth, first = static_cast<int>(blockIdx.y) * channels;
  const int taps = sizes.R * sizes.S;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < taps * channels; i += kThreads) {
    const int c = i / taps, tap = i % taps;
    filters[tap * channels + c] = first + c < sizes.C ? w[(first + c) * taps + tap] : T(0.f);
  }
  __syncthreads();

  const int within = thread % sizes.vectors * kWidth, c = first + within;
  const int in_h = backward_input ? sizes.P : sizes.H, in_w = backward_input ? sizes.Q : sizes.W;
  const int slots = kThreads / sizes.vectors;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * slots;
  if (c >= sizes.C) return;
  for (int64_t position = static_cast<int64_t>(blockIdx.x) * slots + thread / sizes.vectors; position < sizes.positions;
       position += stride) {
    int rest = static_cast<int>(position);
    const int64_t image = sizes.image.split(rest);
    const int row = sizes.row.split(rest);
    Sum sums[kWidth] = {};
    for (int r = 0; r < sizes.R; ++r) {
      int h = backward_input ? row + sizes.padding_h - r * sizes.dilation_h
                             : row * sizes.stride_h - sizes.padding_h + r * sizes.dilation_h;
      if (h < 0 || (backward_input && h % sizes.stride_h != 0)) continue;
      if (backward_input) h /= sizes.stride_h;
      if (h >= in_h) continue;
      for (int s = 0; s < sizes.S; ++s) {
        int column = backward_input ? rest + sizes.padding_w - s * sizes.dilation_w
                                    : rest * sizes.stride_w - sizes.padding_w + s * sizes.dilation_w;
        if (column < 0 || (backward_input && column % sizes.stride_w != 0)) continue;
        if (backward_input) column /= sizes.stride_w;
        if (column >= in_w) continue;
        const auto x = Channels::load(in + ((image * in_h + h) * in_w + column) * sizes.C + c);
        const auto f = Channels::load(filters + (r * sizes.S + s) * channels + within);
        WEFT_UNROLL
        for (int e = 0; e < kWidth; ++e) sums[e] += static_cast<Sum>(x[e]) * static_cast<Sum>(f[e]);
      }
    }
    epilogue.template store<!backward_input>(position * sizes.C + c, c, sizes.C - c, sums);
  }
}

/// Grid: x = shares of the positions, y over channels, z over filter rows and groups of kTaps in a row. A thread
/// accumulates taps (r, s … s + 3) of its channels over its positions; the block reduces its threads' sums in shared
/// memory [slot][tap][channel], in a fixed order, and stores them to plane x of `partial`; split_sum adds the planes.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads, 8)
    depthwise_weight_kernel(Accumulate<T>* partial, const T* dy, const T* x, const DepthwiseSizes sizes, int share) {
  using Sum = Accumulate<T>;
  using Channels = Vec<T, kWidth>;
  Sum* const shared = dynamic_shared<Sum>();
  const int runs = (sizes.S + kTaps - 1) / kTaps;
  const int r = static_cast<int>(blockIdx.z) / runs, first_s = static_cast<int>(blockIdx.z) % runs * kTaps;
  const int channels = sizes.vectors * kWidth, first = static_cast<int>(blockIdx.y) * channels;
  const int thread = static_cast<int>(threadIdx.x);
  const int within = thread % sizes.vectors * kWidth, c = first + within;
  const int slots = kThreads / sizes.vectors, slot = thread / sizes.vectors;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * share;
  const int64_t end = c < sizes.C ? min(begin + share, static_cast<int64_t>(sizes.positions)) : begin;

  Sum sums[kTaps][kWidth] = {};
  for (int64_t position = begin + slot; position < end; position += slots) {
    int q = static_cast<int>(position);
    const int64_t image = sizes.image.split(q);
    const int h = sizes.row.split(q) * sizes.stride_h - sizes.padding_h + r * sizes.dilation_h;
    if (h < 0 || h >= sizes.H) continue;
    const auto gradient = Channels::load(dy + position * sizes.C + c);
    const T* const row = x + (image * sizes.H + h) * sizes.W * sizes.C + c;
    WEFT_UNROLL
    for (int tap = 0; tap < kTaps; ++tap) {
      const int s = first_s + tap, column = q * sizes.stride_w - sizes.padding_w + s * sizes.dilation_w;
      if (s >= sizes.S || column < 0 || column >= sizes.W) continue;
      const auto pixel = Channels::load(row + static_cast<int64_t>(column) * sizes.C);
      WEFT_UNROLL
      for (int e = 0; e < kWidth; ++e) sums[tap][e] += static_cast<Sum>(gradient[e]) * static_cast<Sum>(pixel[e]);
    }
  }
  WEFT_UNROLL
  for (int tap = 0; tap < kTaps; ++tap) WEFT_UNROLL
  for (int e = 0; e < kWidth; ++e) shared[(slot * kTaps + tap) * channels + within + e] = sums[tap][e];
  __syncthreads();

  const int taps = sizes.R * sizes.S;
  Sum* const plane = partial + static_cast<int64_t>(blockIdx.x) * sizes.C * taps;
  for (int i = thread; i < kTaps * channels; i += kThreads) {
    const int tap = i / channels, channel = i % channels;
    if (first_s + tap >= sizes.S || first + channel >= sizes.C) continue;
    Sum sum = 0;
    for (int j = 0; j < slots; ++j) sum += shared[j * kTaps * channels + i];
    plane[static_cast<int64_t>(first + channel) * taps + r * sizes.S + first_s + tap] = sum;
  }
}

namespace {

template <class T, bool backward_input>
void depthwise(const Queue& queue, const char* name, const View& out, const View& in, const View& w,
               const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  with_width<T>(shape.C, {out.data, in.data, epilogue.residual.data}, [&]<int kWidth>() {
    DepthwiseSizes sizes = depthwise_sizes(shape, backward_input, kWidth);
    const int64_t taps = shape.R * shape.S, vector = kWidth * sizeof(T);
    while (sizes.vectors > 1 && taps * sizes.vectors * vector > 48 * 1024) sizes.vectors /= 2;
    const int64_t shared = taps * sizes.vectors * vector, channels = sizes.vectors * kWidth;
    WEFT_CHECK(shared <= 96 * 1024, name, ": expected a filter of at most ", 96 * 1024 / vector, " taps, got ", taps);
    const int slots = kThreads / sizes.vectors;
    const dim3 grid(blocks_for(sizes.positions, slots * 8), static_cast<unsigned>((shape.C + channels - 1) / channels));
    launch(queue, name, grid, dim3(kThreads), static_cast<size_t>(shared), depthwise_kernel<T, kWidth, backward_input>,
           epilogue.on<T>(out, shape.C), static_cast<const T*>(in.data), static_cast<const T*>(w.data), sizes);
  });
}

}  // namespace

template <class T>
void depthwise_forward(const Queue& queue, const View& y, const View& x, const View& w, const ChannelEpilogue& epilogue,
                       const Conv2dShape& shape) {
  depthwise<T, false>(queue, "conv2d_forward_depthwise", y, x, w, epilogue, shape);
}

template <class T>
void depthwise_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w,
                              const Conv2dShape& shape) {
  depthwise<T, true>(queue, "conv2d_backward_input_depthwise", dx, dy, w, {}, shape);
}

template <class T>
void depthwise_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                               const Conv2dShape& shape) {
  using Sum = Accumulate<T>;
  with_width<T>(shape.C, {dy.data, x.data}, [&]<int kWidth>() {
    const DepthwiseSizes sizes = depthwise_sizes(shape, false, kWidth);
    const int64_t channels = sizes.vectors * kWidth, chunks = (shape.C + channels - 1) / channels;
    const int64_t rows = shape.R * ((shape.S + kTaps - 1) / kTaps), slots = kThreads / sizes.vectors;
    // About 512 blocks, each thread with at least 16 positions.
    const int64_t wanted =
        std::clamp<int64_t>(512 / (chunks * rows), 1, std::max<int64_t>(1, sizes.positions / (slots * 16)));
    const int64_t share = (sizes.positions + wanted - 1) / wanted, splits = (sizes.positions + share - 1) / share;
    const int64_t taps = shape.R * shape.S, count = shape.C * taps;
    const Workspace partial(queue, static_cast<size_t>(splits * count) * sizeof(Sum), "conv2d_backward_weight");
    launch(queue, "conv2d_backward_weight_depthwise",
           dim3(static_cast<unsigned>(splits), static_cast<unsigned>(chunks), static_cast<unsigned>(rows)),
           dim3(kThreads), kThreads * kTaps * kWidth * sizeof(Sum), depthwise_weight_kernel<T, kWidth>,
           partial.as<Sum>(), static_cast<const T*>(dy.data), static_cast<const T*>(x.data), sizes,
           static_cast<int>(share));
    const Epilogue<T> epilogue{
        dw.data, nullptr, 1, dw.dtype != dtype_of<T>, false, false, allows_vector_store(dw, taps)};
    split_sum<T>(queue, "conv2d_backward_weight_sum", epilogue, partial.as<Sum>(), count, taps,
                 static_cast<int>(splits));
  });
}

#define WEFT_DEPTHWISE(T)                                                                                             \
  template void depthwise_forward<T>(const Queue&, const View&, const View&, const View&, const ChannelEpilogue&,     \
                                     const Conv2dShape&);                                                             \
  template void depthwise_backward_input<T>(const Queue&, const View&, const View&, const View&, const Conv2dShape&); \
  template void depthwise_backward_weight<T>(const Queue&, const View&, const View&, const View&, const Conv2dShape&)

WEFT_DEPTHWISE(float);
WEFT_DEPTHWISE(double);
WEFT_DEPTHWISE(bf16);
WEFT_DEPTHWISE(f16);
#undef WEFT_DEPTHWISE

}  // namespace weft::kernels::cuda
