// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cumsum.h"

#include <optional>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/runtime/allocator.h"

// A prefix sum in three layers (Sengupta et al. 2007, "Scan primitives for GPU computing"): a thread sums its kItems
// neighbours, a warp the 32 threads by shuffles, a block its warps in shared memory.
//   row  |---------------- n ----------------|     a block owns a chunk of a row and goes through it tile by tile,
//        |-- chunk --|-- chunk --|-- chunk --|     with the sum of the tiles before as carry
//        |tile|tile| …                             tile: kThreads x kItems elements
// If there are few long rows, they are divided into chunks to fill the GPU: one launch sums each chunk, a second scans
// these sums, a third scans the chunks from there. No block waits for another; the order of every sum depends on the
// sizes alone. Shared: a sum per warp. Bytes per element: x read and y written once; x is read twice if rows are
// divided. 70% of the bandwidth.

namespace weft::kernels::cuda {

namespace {

constexpr int kItems = 4;
constexpr int kShortThreads = 32, kThreads = 256;
constexpr int64_t kShortRow = 4 * kShortThreads * kItems;  // longest row that one warp scans
constexpr int64_t kChunk = 4 * kThreads * kItems;          // minimum elements of a chunk
constexpr int64_t kMostChunks = 1024, kManyRows = 512;     // kManyRows rows fill the GPU without chunks

struct Rows {
  int64_t n, chunks, chunk;  // elements of a row, its chunks, elements of a chunk
  bool reverse;
  __device__ int64_t at(int64_t i) const { return reverse ? n - 1 - i : i; }
};

/// The sum of `value` over the threads before this one. All threads of the block must call. `total`: over all of them.
template <int kBlock, class A>
__device__ __forceinline__ A block_exclusive_sum(A value, A& total) {
  constexpr int kWarps = kBlock / 32;
  __shared__ A of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  A upto = value;
  WEFT_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const A before = __shfl_up_sync(kFullWarp, upto, distance);
    if (lane >= distance) upto += before;
  }
  if (lane == 31) of_warp[warp] = upto;
  __syncthreads();
  A earlier = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) earlier += of_warp[w];
    total += of_warp[w];
  }
  __syncthreads();  // `of_warp` may be reused
  // The lane before, not upto - value: a difference would round, and infinity - infinity is NaN.
  const A before = __shfl_up_sync(kFullWarp, upto, 1);
  return lane == 0 ? earlier : earlier + before;
}

/// sums[b] = the sum of block b's chunk.
template <class A, class T>
__global__ void chunk_sum_kernel(A* sums, const T* x, const Rows rows) {
  const int64_t row = blockIdx.x / rows.chunks, begin = (blockIdx.x - row * rows.chunks) * rows.chunk;
  const int64_t end = begin + rows.chunk < rows.n ? begin + rows.chunk : rows.n;
  A sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += from<A>(x[row * rows.n + rows.at(i)]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// `upto` holds the inclusive prefix sums of each row's chunks; y may be x.
template <int kBlock, class A, class Y, class T>
__global__ void scan_kernel(Y* y, const T* x, const A* upto, const Rows rows) {
  const int64_t row = blockIdx.x / rows.chunks, chunk = blockIdx.x - row * rows.chunks;
  const int64_t begin = chunk * rows.chunk, end = begin + rows.chunk < rows.n ? begin + rows.chunk : rows.n;
  A carry = chunk > 0 ? upto[blockIdx.x - 1] : A(0);
  for (int64_t tile = begin; tile < end; tile += kBlock * kItems) {
    const int64_t first = tile + static_cast<int64_t>(threadIdx.x) * kItems;
    A sums[kItems], mine = 0, total;
    WEFT_UNROLL
    for (int k = 0; k < kItems; ++k) {
      if (first + k < end) mine += from<A>(x[row * rows.n + rows.at(first + k)]);
      sums[k] = mine;
    }
    const A before = carry + block_exclusive_sum<kBlock>(mine, total);
    WEFT_UNROLL
    for (int k = 0; k < kItems; ++k)
      if (first + k < end) y[row * rows.n + rows.at(first + k)] = to<Y>(before + sums[k]);
    carry += total;
  }
}

template <class A, class Y, class T>
void scan(const Queue& queue, Y* y, const T* x, const A* upto, int64_t count, const Rows& rows) {
  const dim3 grid(static_cast<unsigned>(count * rows.chunks));
  if (rows.n <= kShortRow)
    launch(queue, "cumsum", grid, dim3(kShortThreads), 0, &scan_kernel<kShortThreads, A, Y, T>, y, x, upto, rows);
  else
    launch(queue, "cumsum", grid, dim3(kThreads), 0, &scan_kernel<kThreads, A, Y, T>, y, x, upto, rows);
}

}  // namespace

void cumsum(const Queue& queue, const View& y, const View& x, bool reverse) {
  check_cumsum(y, x);
  if (x.numel() == 0) return;
  const int64_t n = x.sizes[x.rank - 1], count = x.numel() / n;
  Rows rows{n, 1, n, reverse};
  if (n > 2 * kChunk && count < kManyRows) {
    rows.chunk = (std::max(kChunk, n / kMostChunks) + kChunk - 1) / kChunk * kChunk;
    rows.chunks = (n + rows.chunk - 1) / rows.chunk;
  }
  with_dtype<float, bf16, f16, double, int64_t, int32_t, uint8_t, bool>(x.dtype, "cumsum", [&]<class T>() {
    const auto into = [&]<class A, class Y>() {
      std::optional<Workspace> sums;
      A* upto = nullptr;
      if (rows.chunks > 1) {
        sums.emplace(queue, static_cast<size_t>(count * rows.chunks) * sizeof(A), "cumsum");
        upto = sums->template as<A>();
        launch(queue, "cumsum (chunks)", dim3(static_cast<unsigned>(count * rows.chunks)), dim3(kThreads), 0,
               &chunk_sum_kernel<A, T>, upto, static_cast<const T*>(x.data), rows);
        scan<A, A, A>(queue, upto, upto, nullptr, count, {rows.chunks, 1, rows.chunks, false});
      }
      scan<A, Y, T>(queue, static_cast<Y*>(y.data), static_cast<const T*>(x.data), upto, count, rows);
    };
    if constexpr (!is_floating(dtype_of<T>))
      into.template operator()<int64_t, int64_t>();
    else if (y.dtype == DType::f64)
      into.template operator()<double, double>();
    else
      into.template operator()<Accumulate<T>, T>();
  });
}

}  // namespace weft::kernels::cuda
