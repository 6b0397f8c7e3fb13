// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/random.h"

#include "kernels/contracts/permutation.h"
#include "kernels/contracts/random_math.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/cuda/wrong_index.cuh"

// Grid-stride, 256 threads per block, no barrier but a permutation's. A thread owns the elements of one Philox block:
// four neighbours (two for uniform and normal f64; dropout: two blocks in bf16, so that it reads and writes 16 bytes).
// The seed and the counter's base are read from device memory, so that a replayed graph draws new numbers. Bytes per
// element: size_of(y) written (dropout: read as well); about 25 integer operations of Philox, and 15 flops for a
// normal. 70% of the write bandwidth (f32), bound by integer multiplication in bf16.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

/// y = low + (high - low) u; rounding never leaves the range.
template <class A>
struct Uniform {
  using Value = A;
  A low, width, least, most;
  __device__ void operator()(const Philox4& block, A* out) const {
    for (int i = 0; i < kDraws<A>; ++i) {
      const A value = low + width * uniform_draw<A>(block, i);
      out[i] = value < least ? least : value > most ? most : value;
    }
  }
};

template <class A>
struct Integers {
  using Value = int64_t;
  int64_t low, count;
  __device__ void operator()(const Philox4& block, int64_t* out) const {
    for (int i = 0; i < kDraws<A>; ++i) out[i] = low + integer_below(count, uniform_draw<A>(block, i));
  }
};

template <class A>
struct Normal {
  using Value = A;
  A mean, std;
  __device__ void operator()(const Philox4& block, A* out) const {
    for (int pair = 0; pair < kDraws<A> / 2; ++pair) {
      normal_pair(block, pair, out[2 * pair], out[2 * pair + 1]);
      out[2 * pair] = mean + std * out[2 * pair];
      out[2 * pair + 1] = mean + std * out[2 * pair + 1];
    }
  }
};

template <class A>
struct Bernoulli {
  using Value = A;
  A p;
  __device__ void operator()(const Philox4& block, A* out) const {
    for (int i = 0; i < kDraws<A>; ++i) out[i] = uniform_draw<A>(block, i) < p ? A(1) : A(0);
  }
};

/// A: the type of the draws (f64 for f64 and i64 y, else f32).
template <class A, class T, class F>
__global__ void random_kernel(T* y, int64_t n, const int64_t* state, uint64_t offset, const F f) {
  constexpr int kElements = kDraws<A>;
  const uint64_t seed = static_cast<uint64_t>(state[0]), base = static_cast<uint64_t>(state[1]) + offset;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, blocks = (n + kElements - 1) / kElements;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < blocks; k += step) {
    typename F::Value values[kElements];
    f(philox(seed, base + static_cast<uint64_t>(k)), values);
    for (int i = 0; i < kElements; ++i)
      if (k * kElements + i < n) y[k * kElements + i] = to<T>(values[i]);
  }
}

/// Elements per thread: 16 bytes, and whole Philox blocks.
template <class T>
inline constexpr int kDropoutUnit = kVecSize<T> < 4 ? 4 : kVecSize<T>;

/// The mask is drawn as in random_bernoulli, four elements per Philox block for any dtype. A thread owns one or two
/// blocks; `vectors`: x and y are aligned.
template <class T>
__global__ void dropout_kernel(T* y, const T* x, int64_t n, const int64_t* state, uint64_t offset, const float p,
                               const Accumulate<T> scale, const bool vectors) {
  using A = Accumulate<T>;
  constexpr int V = kDropoutUnit<T>;
  const uint64_t seed = static_cast<uint64_t>(state[0]), base = static_cast<uint64_t>(state[1]) + offset;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V; at < n; at += step) {
    const bool whole = vectors && at + V <= n;
    Vec<T, V> unit;
    if (whole) unit = Vec<T, V>::load(x + at);
    WEFT_UNROLL
    for (int b = 0; b < V; b += 4) {
      const Philox4 block = philox(seed, base + static_cast<uint64_t>(at + b) / 4);
      WEFT_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (!whole) unit[b + i] = at + b + i < n ? x[at + b + i] : T(0.0f);
        const bool kept = uniform01(block.word[i]) >= p;
        unit[b + i] = kept ? to<T>(from<A>(unit[b + i]) * scale) : to<T>(A(0));
        if (!whole && at + b + i < n) y[at + b + i] = unit[b + i];
      }
    }
    if (whole) unit.store(y + at);
  }
}

/// One thread per row; the first wrong row is reported.
__global__ void check_weights_kernel(const bool* fine, int64_t n, const WrongIndexReport report) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    if (!fine[i]) report(0, i);
}

__global__ void permutation_kernel(int64_t* y, int64_t n, const int64_t* state, uint64_t offset) {
  const uint64_t seed = static_cast<uint64_t>(state[0]), base = static_cast<uint64_t>(state[1]) + offset;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  __shared__ Permutation order;
  if (threadIdx.x == 0) order.set_size(n);
  if (threadIdx.x < Permutation::kPairs) order.set_keys(seed, base, static_cast<int>(threadIdx.x));
  __syncthreads();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) y[i] = order(i);
}

void check(const char* name, const View& y, const View& state) {
  WEFT_CHECK(y.is_contiguous(), name, ": expected a contiguous output, got ", y);
  WEFT_CHECK(state.dtype == DType::i64 && state.numel() == 2, name, ": expected a state i64[2], got ", state);
}

template <class T, template <class> class F, class A = Accumulate<T>>
void draw(const Queue& queue, const char* name, const View& y, const View& state, RandomArguments random,
          const F<A>& f) {
  const int64_t n = y.numel();
  launch(queue, name, dim3(blocks_for(n, kThreads * kDraws<A>)), dim3(kThreads), 0, &random_kernel<A, T, F<A>>,
         y.as<T>(), n, static_cast<const int64_t*>(state.data), random.offset, f);
}

}  // namespace

void random_uniform(const Queue& queue, const View& y, const View& state, RandomArguments random, UniformRange range) {
  check("random_uniform", y, state);
  with_dtype<float, bf16, f16, double>(y.dtype, "random_uniform", [&]<class T>() {
    using A = Accumulate<T>;
    draw<T, Uniform>(queue, "random_uniform", y, state, random,
                     {static_cast<A>(range.low), static_cast<A>(range.high - range.low), static_cast<A>(range.least),
                      static_cast<A>(range.most)});
  });
}

void random_normal(const Queue& queue, const View& y, const View& state, RandomArguments random, double mean,
                   double std) {
  check("random_normal", y, state);
  with_dtype<float, bf16, f16, double>(y.dtype, "random_normal", [&]<class T>() {
    using A = Accumulate<T>;
    draw<T, Normal>(queue, "random_normal", y, state, random, {static_cast<A>(mean), static_cast<A>(std)});
  });
}

void random_integers(const Queue& queue, const View& y, const View& state, RandomArguments random, int64_t low,
                     int64_t count) {
  check("random_integers", y, state);
  draw<int64_t, Integers, double>(queue, "random_integers", y, state, random, {low, count});
}

void random_bernoulli(const Queue& queue, const View& y, const View& state, RandomArguments random, double p) {
  check("random_bernoulli", y, state);
  with_dtype<float, bf16, f16, double, int64_t, int32_t, uint8_t, bool>(y.dtype, "random_bernoulli", [&]<class T>() {
    draw<T, Bernoulli, float>(queue, "random_bernoulli", y, state, random, {static_cast<float>(p)});
  });
}

void check_weights(const Queue& queue, const View& fine, int64_t positive) {
  const int64_t n = fine.numel();
  launch(queue, "check_weights", dim3(blocks_for(n, kThreads)), dim3(kThreads), 0, &check_weights_kernel,
         static_cast<const bool*>(fine.as<bool>()), n,
         WrongIndexReport{wrong_index_record(queue.device),
                          {.text = WrongIndex::Text::weights, .op = "multinomial", .limit = positive}});
}

void random_permutation(const Queue& queue, const View& y, const View& state, RandomArguments random) {
  check("random_permutation", y, state);
  const int64_t n = y.numel();
  launch(queue, "random_permutation", dim3(blocks_for(n, kThreads)), dim3(kThreads), 0, &permutation_kernel,
         y.as<int64_t>(), n, static_cast<const int64_t*>(state.data), random.offset);
}

void dropout(const Queue& queue, const View& y, const View& x, const View& state, RandomArguments random, double p) {
  check("dropout", y, state);
  WEFT_CHECK(x.is_contiguous() && x.same_sizes(y) && x.dtype == y.dtype, "dropout: expected ", y, ", got ", x);
  const int64_t n = y.numel();
  with_dtype<float, bf16, f16, double>(y.dtype, "dropout", [&]<class T>() {
    using A = Accumulate<T>;
    launch(queue, "dropout", dim3(blocks_for(n, kThreads * kDropoutUnit<T>)), dim3(kThreads), 0, &dropout_kernel<T>,
           y.as<T>(), static_cast<const T*>(x.data), n, static_cast<const int64_t*>(state.data), random.offset,
           static_cast<float>(p), static_cast<A>(p < 1 ? 1 / (1 - p) : 0), vectorizable({y.data, x.data}));
  });
}

}  // namespace weft::kernels::cuda
