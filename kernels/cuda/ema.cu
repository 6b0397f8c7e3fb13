// SPDX-License-Identifier: Apache-2.0
#include "kernels/ema.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// One launch over a flat range. Grid-stride, 256 threads a block, no barrier; a thread owns 16 bytes of neighbours, or
// one element where a pointer is not aligned for that. Bytes per element in f32: ema_step 12, exchange 16; 90% of the
// bandwidth from a million elements on.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

struct Average {
  template <class A>
  static __device__ void apply(A& mean, A& weight, A fresh) {
    mean += fresh * (weight - mean);
  }
};

struct Exchange {
  template <class A>
  static __device__ void apply(A& a, A& b, A) {
    const A kept = a;
    a = b;
    b = kept;
  }
};

/// `count`: none, or the updates so far, which raise `fresh` to 9 / (10 + count).
template <int V, class Rule, bool kWritesSecond, class A>
__global__ void pair_kernel(A* a, A* b, const A* count, A fresh, int64_t n) {
  if (count != nullptr) {
    const A early = A(9) / (A(10) + *count);
    fresh = fresh > early ? fresh : early;
  }
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V; i < n; i += stride) {
    if (n - i >= V) {
      Vec<A, V> one = Vec<A, V>::load(a + i), two = Vec<A, V>::load(b + i);
      for (int k = 0; k < V; ++k) Rule::apply(one[k], two[k], fresh);
      one.store(a + i);
      if (kWritesSecond) two.store(b + i);
    } else {
      for (int64_t k = i; k < n; ++k) {
        A one = a[k], two = b[k];
        Rule::apply(one, two, fresh);
        a[k] = one;
        if (kWritesSecond) b[k] = two;
      }
    }
  }
}

bool aligned(const View& view) { return reinterpret_cast<uintptr_t>(view.data) % 16 == 0; }

template <class Rule, bool kWritesSecond>
void run(const Queue& queue, const char* name, const View& a, const View& b, const View& count, double fresh) {
  WEFT_CHECK(a.rank == 1 && a.same_sizes(b) && a.is_contiguous() && b.is_contiguous() && a.dtype == b.dtype, name,
             ": expected flat ranges of one size and dtype, got ", a, " and ", b);
  const int64_t n = a.numel();
  with_dtype<float, double>(a.dtype, name, [&]<class A>() {
    constexpr int V = 16 / sizeof(A);
    const auto go = [&](auto kernel, int v) {
      launch(queue, name, dim3(blocks_for(n, kThreads * v)), dim3(kThreads), 0, kernel, a.as<A>(), b.as<A>(),
             static_cast<const A*>(count ? count.as<A>() : nullptr), static_cast<A>(fresh), n);
    };
    if (aligned(a) && aligned(b))
      go(&pair_kernel<V, Rule, kWritesSecond, A>, V);
    else
      go(&pair_kernel<1, Rule, kWritesSecond, A>, 1);
  });
}

}  // namespace

void ema_step(const Queue& queue, const View& average, const View& w, const View& count, EmaArguments arguments) {
  run<Average, false>(queue, "ema_step", average, w, arguments.warmup ? count : View::none(), 1 - arguments.decay);
}

void exchange(const Queue& queue, const View& a, const View& b) {
  run<Exchange, true>(queue, "exchange", a, b, View::none(), 0);
}

}  // namespace weft::kernels::WEFT_DEVICE
