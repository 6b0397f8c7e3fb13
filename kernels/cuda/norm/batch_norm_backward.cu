// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/batch_norm.h"

#include "kernels/cuda/norm/batch_norm.cuh"
#include "kernels/runtime/allocator.h"

// Geometry: batch_norm.cuh. Pass 1: sums of dy and dy xhat per channel and chunk, and the residual's gradient. This is
// dy masked by the ReLU, and replaces dy and y from here on. Pass 2: dx, backwards over x: every block combines the
// sums of its channels; the blocks of the first chunk write dweight and dbias. Without a residual y is not read: the
// ReLU's mask is recomputed from x, bit for bit as in forward. Bytes per element of size e, two passes: 5e (dy and x
// twice, dx), with a ReLU on top of a residual 7e (dy, y, x twice, dresidual written and read, dx). Forward's mask takes
// a bit in place of y's e. Four rows in flight per thread and tensor, two in pass 2; 10 flops. 85% of the bandwidth
// for 10 MB and more.

namespace weft::kernels::cuda {

using namespace channelwise;

namespace {

/// The source of the ReLU's mask.
enum class Mask { everywhere, from_y, from_x, from_bits };

template <class T>
struct Incoming {
  const T* dy;
  const T* x;
  const T* y;           // from_y only
  const uint8_t* bits;  // from_bits only
};

/// The units at one position: x and dy; clear_masked() sets dy to 0 where the ReLU was 0.
template <int V, Mask mask, class T>
struct Units {
  Vec<T, V> dy, x, y;
  unsigned bits;

  __device__ __forceinline__ void load(const Incoming<T>& in, const int64_t at) {
    dy = Vec<T, V>::load(in.dy + at);
    x = Vec<T, V>::load(in.x + at);
    if constexpr (mask == Mask::from_y) y = Vec<T, V>::load(in.y + at);
    if constexpr (mask == Mask::from_bits) bits = unsigned{in.bits[at / 8]} >> (at % 8);
  }
  __device__ __forceinline__ void clear_masked(const Accumulate<T>* mean, const Accumulate<T>* scale,
                                               const Accumulate<T>* bias) {
    using A = Accumulate<T>;
    if constexpr (mask == Mask::from_y) {
      WEFT_UNROLL
      for (int i = 0; i < V; ++i)
        if (!(from<A>(y[i]) > A(0))) dy[i] = to<T>(A(0));
    } else if constexpr (mask == Mask::from_bits) {
      WEFT_UNROLL
      for (int i = 0; i < V; ++i)
        if ((bits >> i & 1u) == 0) dy[i] = to<T>(A(0));
    } else if constexpr (mask == Mask::from_x) {
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        const T y = to<T>(normalized(from<A>(x[i]), mean[i], scale[i], bias[i]));
        if (!(from<A>(y) > A(0))) dy[i] = to<T>(A(0));
      }
    }
  }
};

/// Sums of dy and dy xhat of each chunk, [2, C]; dresidual (or none) = the masked dy.
template <int V, Mask mask, class T>
__global__ void __launch_bounds__(kThreads, 1)
    gradient_sums_kernel(Accumulate<T>* sums, T* dresidual, const Incoming<T> in,
                         const Channels<Accumulate<T>> channels, const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_dy[kWarps][kTile], shared_dyx[kWarps][kTile];
  const Position position = position_of<V>(g, Sweep::forward);
  A mean[V], scale[V], bias[V], sum_dy[V], sum_dyx[V];
  WEFT_UNROLL
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = position.valid ? channels.mean[c] : A(0);
    scale[i] = position.valid ? channels.invstd[c] : A(0);
    if (position.valid && channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = position.valid && channels.bias != nullptr ? channels.bias[c] : A(0);
    sum_dy[i] = sum_dyx[i] = A(0);
  }
  each_rows<4>(position, [&]<int N>(const int64_t at) {
    Units<V, mask, T> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r].load(in, at + r * position.step);
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      units[r].clear_masked(mean, scale, bias);
      if (dresidual != nullptr) units[r].dy.store(dresidual + at + r * position.step);
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        const A d = from<A>(units[r].dy[i]);
        sum_dy[i] += d;
        sum_dyx[i] += d * (from<A>(units[r].x[i]) - mean[i]);
      }
    }
  });
  for (int distance = g.columns; distance < kWarp; distance *= 2) {  // over lanes of the same channels
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      sum_dy[i] += __shfl_xor_sync(kAllLanes, sum_dy[i], distance);
      sum_dyx[i] += __shfl_xor_sync(kAllLanes, sum_dyx[i], distance);
    }
  }
  const int thread = static_cast<int>(threadIdx.x), width = g.columns * V;
  if (thread % kWarp < g.columns) {
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      shared_dy[thread / kWarp][position.column + i] = sum_dy[i];
      shared_dyx[thread / kWarp][position.column + i] = sum_dyx[i];
    }
  }
  __syncthreads();
  const int64_t c = static_cast<int64_t>(blockIdx.x) * width + thread;
  if (thread >= width || c >= g.C) return;
  A dy = 0, dyx = 0;
  WEFT_UNROLL
  for (int warp = 0; warp < kWarps; ++warp) {
    dy += shared_dy[warp][thread];
    dyx += shared_dyx[warp][thread];
  }
  A* const chunk = sums + blockIdx.y * 2 * g.C;
  chunk[c] = dy;
  chunk[g.C + c] = dyx * channels.invstd[c];
}

/// Sums over a batch, or their means, in `count` parts of C numbers, `stride` apart.
template <class A>
struct Sums {
  const A *dy, *dyx;
  int64_t count, stride;
};

/// dx = weight invstd (dy - mean(dy) - xhat mean(dy xhat)), dresidual = dy, dweight = sum(dy xhat), dbias = sum(dy),
/// each optional; the means are the sums times `share`.
template <int V, Mask mask, class T>
__global__ void __launch_bounds__(kThreads, 1)
    gradient_kernel(T* dx, T* dresidual, Accumulate<T>* dweight, Accumulate<T>* dbias, const Incoming<T> in,
                    const Channels<Accumulate<T>> channels, const Sums<Accumulate<T>> sums, const Accumulate<T> share,
                    const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_dy[kThreads], shared_dyx[kThreads], sum_dy[kTile], sum_dyx[kTile];
  const int width = g.columns * V;
  const ChunkShare own(g.C, width);
  A dy = 0, dyx = 0;
  for (int64_t first = own.lane; first < sums.count; first += int64_t{kBatch<A>} * own.lanes) {
    A batch_dy[kBatch<A>], batch_dyx[kBatch<A>];
    WEFT_UNROLL
    for (int k = 0; k < kBatch<A>; ++k) {
      const int64_t part = first + int64_t{k} * own.lanes;
      const bool inside = own.valid && part < sums.count;
      batch_dy[k] = inside ? sums.dy[part * sums.stride + own.c] : A(0);
      batch_dyx[k] = inside ? sums.dyx[part * sums.stride + own.c] : A(0);
    }
    WEFT_UNROLL
    for (int k = 0; k < kBatch<A>; ++k) dy += batch_dy[k], dyx += batch_dyx[k];
  }
  shared_dy[threadIdx.x] = dy;
  shared_dyx[threadIdx.x] = dyx;
  __syncthreads();
  if (own.lane == 0) {
    for (int k = 1; k < own.lanes && k < sums.count; ++k) {
      dy += shared_dy[k * width + own.column];
      dyx += shared_dyx[k * width + own.column];
    }
    sum_dy[own.column] = dy;
    sum_dyx[own.column] = dyx;
    if (own.valid && blockIdx.y == 0) {
      if (dbias != nullptr) dbias[own.c] = dy;
      if (dweight != nullptr) dweight[own.c] = dyx;
    }
  }
  __syncthreads();
  const Position position = position_of<V>(g, Sweep::back);
  if (!position.valid || (dx == nullptr && dresidual == nullptr)) return;
  A mean[V], scale[V], bias[V], slope[V], constant[V];
  WEFT_UNROLL
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = channels.mean[c];
    scale[i] = channels.invstd[c];
    slope[i] = channels.invstd[c] * sum_dyx[position.column + i] * share;
    constant[i] = sum_dy[position.column + i] * share;
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = channels.bias != nullptr ? channels.bias[c] : A(0);
  }
  each_rows<2>(position, [&]<int N>(const int64_t at) {
    Units<V, mask, T> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r].load(in, at + r * position.step);
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      units[r].clear_masked(mean, scale, bias);
      if (dresidual != nullptr) units[r].dy.store(dresidual + at + r * position.step);
      if (dx == nullptr) continue;
      Vec<T, V> out;
      WEFT_UNROLL
      for (int i = 0; i < V; ++i)
        out[i] =
            to<T>(scale[i] * (from<A>(units[r].dy[i]) - constant[i] - (from<A>(units[r].x[i]) - mean[i]) * slope[i]));
      out.store(dx + at + r * position.step);
    }
  });
}

template <class T>
Incoming<T> incoming(const View& dy, const View& x, const View& y) {
  return {static_cast<const T*>(dy.data), static_cast<const T*>(x.data), static_cast<const T*>(y.data),
          static_cast<const uint8_t*>(y.data)};
}

/// Calls body.operator()<mask>(): one kernel for all masks would need more registers and leave too few warps.
template <class T, class Body>
void with_mask(bool relu, bool has_bias, const View& y, Body&& body) {
  if (!relu)
    body.template operator()<Mask::everywhere>();
  else if (has_bias)
    body.template operator()<Mask::from_x>();
  else if (sizeof(T) == 2 && y.dtype == DType::u8)
    body.template operator()<sizeof(T) == 2 ? Mask::from_bits : Mask::from_y>();
  else
    body.template operator()<Mask::from_y>();
}

template <class T>
Channels<Accumulate<T>> channels_of(const View& mean, const View& invstd, const View& weight, const View& bias) {
  using A = Accumulate<T>;
  return {mean.as<A>(), invstd.as<A>(), nullptr, optional<A>(weight), optional<A>(bias), A(0)};
}

/// The last pass. Without dx and dresidual one block per tile suffices.
template <class T>
void input_gradient(const Queue& queue, const char* name, const View& dx, const View& dresidual, const View& dweight,
                    const View& dbias, const View& dy, const View& x, const View& y, bool relu,
                    const Channels<Accumulate<T>>& channels, const Sums<Accumulate<T>>& sums, Accumulate<T> share) {
  using A = Accumulate<T>;
  const int64_t blocks = dx || dresidual ? resident_blocks(queue) : 1;
  with_mask<T>(relu, channels.bias != nullptr, y, [&]<Mask mask>() {
    with_width<T>(x, 2, blocks, {&dx, &dresidual, &dy, &x, &y}, [&]<int V>(const Geometry2d& g) {
      launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &gradient_kernel<V, mask, T>, optional<T>(dx),
             optional<T>(dresidual), optional<A>(dweight), optional<A>(dbias), incoming<T>(dy, x, y), channels, sums,
             share, g);
    });
  });
}

}  // namespace

void batch_norm_backward(const Queue& queue, const View& dx, const View& dresidual, const View& dweight,
                         const View& dbias, const View& dy, const View& x, const View& y, const View& weight,
                         const View& bias, const View& save_mean, const View& save_invstd,
                         BatchNormArguments arguments) {
  check("batch_norm_backward", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0, "batch_norm_backward: expected the forward's output y with relu");
  const int64_t M = x.sizes[0], C = x.sizes[1];
  if (M == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const Channels<A> channels = channels_of<T>(save_mean, save_invstd, weight, bias);
    with_width<T>(x, 4, kBlocks, {&dresidual, &dy, &x, &y}, [&]<int V>(const Geometry2d& g) {
      const Workspace sums(queue, static_cast<size_t>(2 * C * g.chunks) * sizeof(A), "batch_norm_backward");
      A* const of_chunks = sums.template as<A>();
      with_mask<T>(arguments.relu, !!bias, y, [&]<Mask mask>() {
        launch(queue, "batch_norm_backward (sums)", grid_of(g, V), dim3(kThreads), 0, &gradient_sums_kernel<V, mask, T>,
               of_chunks, optional<T>(dresidual), incoming<T>(dy, x, y), channels, g);
      });
      if (!dx && !dweight && !dbias) return;
      const View& masked = dresidual ? dresidual : dy;
      input_gradient<T>(queue, "batch_norm_backward (dx)", dx, View::none(), dweight, dbias, masked, x, y,
                        arguments.relu && !dresidual, channels, {of_chunks, of_chunks + C, g.chunks, 2 * C},
                        A(1) / static_cast<A>(M));
    });
  });
}

void batch_norm_backward_input(const Queue& queue, const View& dx, const View& dresidual, const View& mean_dy,
                               const View& mean_dyx, const View& dy, const View& x, const View& y, const View& weight,
                               const View& bias, const View& save_mean, const View& save_invstd,
                               BatchNormArguments arguments) {
  check("batch_norm_backward_input", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0,
             "batch_norm_backward_input: expected the forward's output y with relu");
  if (x.numel() == 0 || (!dx && !dresidual)) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward_input", [&]<class T>() {
    using A = Accumulate<T>;
    input_gradient<T>(queue, "batch_norm_backward_input", dx, dresidual, View::none(), View::none(), dy, x, y,
                      arguments.relu, channels_of<T>(save_mean, save_invstd, weight, bias),
                      {static_cast<const A*>(mean_dy.data), static_cast<const A*>(mean_dyx.data), 1, 0}, A(1));
  });
}

}  // namespace weft::kernels::cuda
