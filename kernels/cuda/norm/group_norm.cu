// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/group_norm.h"

#include "kernels/contracts/reduce.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/runtime/allocator.h"

// Each block owns a group of a sample: P lines of C / G channels, C apart. Thread t owns channel t mod lanes at position
// t / lanes, where lanes = min(C / G, 256). It goes on by lanes channels and by ways = 256 / lanes positions. So
// neighbours read neighbouring channels.
// Forward reads the group three times (mean, variance about it, result), backward twice; all but the first come from
// the caches for groups up to some megabytes. Bytes per element: x read and y written once (backward: dy too).
// The order of every sum depends on the sizes alone. Groups narrower than 32 bytes waste part of each sector.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

/// The elements of a block's group that one thread visits.
struct GroupWalk {
  int64_t P, C;
  int channels, lanes, ways;

  GroupWalk(const GroupNormShape& shape)
      : P(shape.P),
        C(shape.C),
        channels(static_cast<int>(shape.channels())),
        lanes(channels < kThreads ? channels : kThreads),
        ways(kThreads / lanes) {}

  /// Calls visit(channel in the group, offset in the tensor).
  template <class Visit>
  __device__ __forceinline__ void operator()(int64_t first, Visit&& visit) const {
    const int thread = static_cast<int>(threadIdx.x), way = thread / lanes;
    if (way >= ways) return;
    for (int k = thread - way * lanes; k < channels; k += lanes) each_position(first, k, way, visit);
  }
  template <class Visit>
  __device__ __forceinline__ void each_position(int64_t first, int k, int way, Visit&& visit) const {
    for (int64_t p = way; p < P; p += ways) visit(k, first + p * C + k);
  }
};

template <class T, class A = Accumulate<T>>
__global__ void __launch_bounds__(kThreads)
    group_norm_forward_kernel(T* y, A* mean, A* invstd, const T* x, const A* weight, const A* bias,
                              const GroupWalk walk, const int groups, const A eps) {
  const int64_t n = blockIdx.x / static_cast<unsigned>(groups);
  const int first_channel = static_cast<int>(blockIdx.x - n * groups) * walk.channels;
  const int64_t first = n * walk.P * walk.C + first_channel;
  const A elements = static_cast<A>(walk.P * walk.channels), start = from<A>(x[first]);
  A sum = 0;
  walk(first, [&](int, int64_t at) { sum += from<A>(x[at]) - start; });
  const A center = start + block_sum(sum) / elements;
  A rest = 0, squares = 0;
  walk(first, [&](int, int64_t at) {
    const A d = from<A>(x[at]) - center;
    rest += d;
    squares += d * d;
  });
  rest = block_sum(rest) / elements;
  const A variance = block_sum(squares) / elements - rest * rest;
  const A scale = A(1) / sqrt((variance > A(0) ? variance : A(0)) + eps);
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = center + rest;
    invstd[blockIdx.x] = scale;
  }
  walk(first, [&](int k, int64_t at) {
    const A xhat = (from<A>(x[at]) - center - rest) * scale;
    y[at] = to<T>(xhat * (weight ? weight[first_channel + k] : A(1)) + (bias ? bias[first_channel + k] : A(0)));
  });
}

/// slopes, offsets [N, C]: a sample's parts of dweight and dbias.
template <class T, class A = Accumulate<T>>
__global__ void __launch_bounds__(kThreads)
    group_norm_backward_kernel(T* dx, A* slopes, A* offsets, const T* dy, const T* x, const A* weight, const A* mean,
                               const A* invstd, const GroupWalk walk, const int groups) {
  __shared__ A parts[2][kThreads];
  const int64_t n = blockIdx.x / static_cast<unsigned>(groups);
  const int first_channel = static_cast<int>(blockIdx.x - n * groups) * walk.channels;
  const int64_t first = n * walk.P * walk.C + first_channel;
  const A center = mean[blockIdx.x], scale = invstd[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x), way = thread / walk.lanes;
  A sum = 0, product = 0;  // over the group, of dy weight and dy weight xhat
  for (int begin = 0; begin < walk.channels; begin += walk.lanes) {
    const int k = begin + thread - way * walk.lanes;
    A offset = 0, slope = 0;
    if (way < walk.ways && k < walk.channels)
      walk.each_position(first, k, way, [&](int, int64_t at) {
        const A d = from<A>(dy[at]);
        offset += d;
        slope += d * ((from<A>(x[at]) - center) * scale);
      });
    parts[0][thread] = offset;
    parts[1][thread] = slope;
    __syncthreads();
    if (way == 0 && k < walk.channels) {
      for (int other = 1; other < walk.ways; ++other) {
        offset += parts[0][other * walk.lanes + thread];
        slope += parts[1][other * walk.lanes + thread];
      }
      const int64_t at = n * walk.C + first_channel + k;
      offsets[at] = offset;
      slopes[at] = slope;
      const A gain = weight ? weight[first_channel + k] : A(1);
      sum += gain * offset;
      product += gain * slope;
    }
    __syncthreads();  // `parts` is reused
  }
  const A elements = static_cast<A>(walk.P * walk.channels);
  sum = block_sum(sum) / elements;
  product = block_sum(product) / elements;
  walk(first, [&](int k, int64_t at) {
    const A xhat = (from<A>(x[at]) - center) * scale, gain = weight ? weight[first_channel + k] : A(1);
    dx[at] = to<T>(scale * (from<A>(dy[at]) * gain - sum - xhat * product));
  });
}

}  // namespace

void group_norm_forward(const Queue& queue, const View& y, const View& mean, const View& invstd, const View& x,
                        const View& weight, const View& bias, double eps) {
  const GroupNormShape shape("group_norm_forward", x, y, mean, invstd);
  if (x.numel() == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "group_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    launch(queue, "group_norm_forward", dim3(static_cast<unsigned>(shape.N * shape.G)), dim3(kThreads), 0,
           &group_norm_forward_kernel<T>, y.as<T>(), mean.as<A>(), invstd.as<A>(), static_cast<const T*>(x.data),
           static_cast<const A*>(optional<A>(weight)), static_cast<const A*>(optional<A>(bias)), GroupWalk(shape),
           static_cast<int>(shape.G), static_cast<A>(eps));
  });
}

void group_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd) {
  const GroupNormShape shape("group_norm_backward", x, dy, mean, invstd);
  with_dtype<float, bf16, f16, double>(x.dtype, "group_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const int64_t parts = x.numel() > 0 ? shape.N * shape.C : 0;
    const Workspace memory(queue, static_cast<size_t>(2 * parts) * sizeof(A), "group_norm_backward");
    A *const slopes = memory.as<A>(), *const offsets = slopes + parts;
    if (parts > 0)
      launch(queue, "group_norm_backward", dim3(static_cast<unsigned>(shape.N * shape.G)), dim3(kThreads), 0,
             &group_norm_backward_kernel<T>, dx.as<T>(), slopes, offsets, static_cast<const T*>(dy.data),
             static_cast<const T*>(x.data), static_cast<const A*>(optional<A>(weight)),
             static_cast<const A*>(mean.data), static_cast<const A*>(invstd.data), GroupWalk(shape),
             static_cast<int>(shape.G));
    const auto sum_of = [&](const View& to, A* from) {
      if (to)
        reduce(queue, Reduce::sum, View::dense(to.data, to.dtype, {1, shape.C}),
               View::dense(from, to.dtype, {parts > 0 ? shape.N : 0, shape.C}));
    };
    sum_of(dweight, slopes);
    sum_of(dbias, offsets);
  });
}

}  // namespace weft::kernels::cuda
