// SPDX-License-Identifier: Apache-2.0
// What CUDA promises of threads, warps, streams, events and captures, as a stand-alone program: it passes on a GPU and in every
// order of the emulator. An argument names a program whose output runtime.cmake expects.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "promises.h"

namespace cg = cooperative_groups;

namespace {

std::mt19937 generator{20251125};

// Threads, blocks, clusters.

__global__ void indices(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  atomicAdd(&out[block * (blockDim.x * blockDim.y * blockDim.z) + thread], static_cast<int>(block * 10000 + thread) + 1);
}

bool runs_every_thread_once() {
  const dim3 shapes[][2] = {{{1, 1, 1}, {1, 1, 1}}, {{3, 2, 2}, {7, 5, 3}}, {{5, 1, 1}, {1024, 1, 1}}, {{1, 4, 3}, {33, 1, 2}}};
  for (const auto& [grid, block] : shapes) {
    const int blocks = static_cast<int>(grid.x * grid.y * grid.z), threads = static_cast<int>(block.x * block.y * block.z);
    const Array<int> out(blocks * threads);
    indices<<<grid, block>>>(out.data);
    const std::vector<int> got = out.get();
    for (int i = 0; i < blocks * threads; ++i)
      if (got[static_cast<size_t>(i)] != i / threads * 10000 + i % threads + 1) return false;
  }
  return true;
}

/// Each block reverses its part through static and dynamic shared memory.
__global__ void reverse(int* y, const int* x) {
  __shared__ int fixed[256];
  extern __shared__ int dynamic[];
  const unsigned t = threadIdx.x, n = blockDim.x;
  fixed[t] = x[blockIdx.x * n + t];
  __syncthreads();
  dynamic[t] = fixed[n - 1 - t];
  __syncthreads();
  y[blockIdx.x * n + t] = dynamic[t];
}

bool reverses_blocks() {
  for (const int threads : {1, 31, 32, 33, 100, 256}) {
    std::vector<int> x(static_cast<size_t>(17 * threads));
    std::iota(x.begin(), x.end(), 5);
    const Array<int> in(x), out(17 * threads);
    reverse<<<17, threads, threads * sizeof(int)>>>(out.data, in.data);
    for (auto part = x.begin(); part != x.end(); part += threads) std::reverse(part, part + threads);
    if (out.get() != x) return false;
  }
  return true;
}

__global__ void count(float* sum, double* wide) {
  atomicAdd(sum, 1.0f);
  atomicAdd(wide, 0.5);
}

bool adds_atomically() {
  const Array<float> sum(1);
  const Array<double> wide(1);
  count<<<79, 253>>>(sum.data, wide.data);
  return sum.get()[0] == 79 * 253 && wide.get()[0] == 79 * 253 * 0.5;
}

/// As CUDA's guide adds doubles: the first read is a plain one.
__device__ void add_by_swaps(double* sum, double value) {
  auto* const bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long old = *bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, static_cast<unsigned long long>(__double_as_longlong(__longlong_as_double(static_cast<long long>(expected)) + value)));
  } while (old != expected);
}
__global__ void count_by_swaps(double* sum) { add_by_swaps(sum, 0.5); }

bool adds_by_swaps() {
  const Array<double> sum(1);
  count_by_swaps<<<5, 70>>>(sum.data);
  return sum.get()[0] == 5 * 70 * 0.5;
}

constexpr int kRows = 26;

__global__ void collectives(int* out, const int* in) {
  constexpr unsigned kAll = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x), v = in[lane];
  const unsigned u = static_cast<unsigned>(v);
  int row = 0, same = -1;
  const auto put = [&](int value) { out[32 * row++ + lane] = value; };
  put(__shfl_sync(kAll, v, 5));
  put(__shfl_sync(kAll, v, lane + 3));
  put(__shfl_sync(kAll, v, 1, 8));
  put(__shfl_up_sync(kAll, v, 3));
  put(__shfl_up_sync(kAll, v, 3, 16));
  put(__shfl_down_sync(kAll, v, 7));
  put(__shfl_down_sync(kAll, v, 7, 8));
  put(__shfl_xor_sync(kAll, v, 9));
  put(__shfl_xor_sync(kAll, v, 9, 8));
  put(static_cast<int>(__shfl_xor_sync(kAll, static_cast<double>(v), 1)));
  put(static_cast<int>(__shfl_xor_sync(kAll, static_cast<long long>(v) << 32, 1) >> 32));
  put(static_cast<int>(__ballot_sync(kAll, v & 1)));
  put(__any_sync(kAll, v == in[7]));
  put(__all_sync(kAll, v == in[7]));
  put(static_cast<int>(__match_any_sync(kAll, v & 3)));
  put(static_cast<int>(__match_all_sync(kAll, v & 3, &same)));
  put(same);
  put(static_cast<int>(__match_all_sync(kAll, v & 0, &same)));
  put(same);
  put(__reduce_add_sync(kAll, v));
  put(__reduce_min_sync(kAll, v));
  put(__reduce_max_sync(kAll, v));
  put(static_cast<int>(__reduce_min_sync(kAll, u)));
  put(static_cast<int>(__reduce_and_sync(kAll, u)));
  put(static_cast<int>(__reduce_or_sync(kAll, u)));
  put(static_cast<int>(__reduce_xor_sync(kAll, u)));
}

/// Each against its definition.
bool exchanges_between_lanes() {
  std::vector<int> v(32);
  for (int& value : v) value = static_cast<int>(generator()) >> 1;  // both signs
  const Array<int> in(v), out(32 * kRows);
  collectives<<<1, 32>>>(out.data, in.data);
  const std::vector<int> got = out.get();
  const std::vector<unsigned> u(v.begin(), v.end());
  unsigned odd = 0, all_and = ~0u, all_or = 0, all_xor = 0;
  for (int l = 0; l < 32; ++l) odd |= (u[l] & 1u) << l, all_and &= u[l], all_or |= u[l], all_xor ^= u[l];
  const bool same = std::ranges::all_of(v, [&](int x) { return (x & 3) == (v[0] & 3); });
  const bool all_seven = std::ranges::all_of(v, [&](int x) { return x == v[7]; });
  for (int l = 0; l < 32; ++l) {
    unsigned alike = 0;
    for (int k = 0; k < 32; ++k) alike |= unsigned{(v[k] & 3) == (v[l] & 3)} << k;
    const int expected[kRows] = {
        v[5], v[(l + 3) % 32], v[l / 8 * 8 + 1], v[l < 3 ? l : l - 3], v[l % 16 < 3 ? l : l - 3], v[l + 7 > 31 ? l : l + 7],
        v[l % 8 + 7 > 7 ? l : l + 7], v[l ^ 9],
        // Between groups of 8 a lane may read from a lower group, not from a higher one.
        v[(l ^ 9) >= l / 8 * 8 + 8 ? l : l ^ 9], v[l ^ 1], v[l ^ 1], static_cast<int>(odd), 1, all_seven, static_cast<int>(alike),
        same ? -1 : 0, same, -1, 1, static_cast<int>(std::accumulate(u.begin(), u.end(), 0u)), *std::ranges::min_element(v),
        *std::ranges::max_element(v), static_cast<int>(*std::ranges::min_element(u)), static_cast<int>(all_and),
        static_cast<int>(all_or), static_cast<int>(all_xor)};
    for (int row = 0; row < kRows; ++row)
      if (got[static_cast<size_t>(32 * row + l)] != expected[row])
        return std::printf("row %d, lane %d: %d\n", row, l, got[static_cast<size_t>(32 * row + l)]), false;
  }
  return true;
}

/// The lower halves of warps pass through the loop at other times than the upper ones.
__global__ void sum_halves(int* out, const int* in) {
  const unsigned t = threadIdx.x;
  int value = in[t];
  for (unsigned turn = 0; turn < 2; ++turn) {
    if ((t / 16) % 2 != turn) continue;
    const unsigned mask = turn == 0 ? 0x0000ffffu : 0xffff0000u;
    for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(mask, value, distance);
    __syncwarp(mask);
  }
  __syncwarp();
  out[t] = value;
}

bool sums_half_warps() {
  std::vector<int> x(128);
  for (int& value : x) value = static_cast<int>(generator() % 1000);
  const Array<int> in(x), out(128);
  sum_halves<<<1, 128>>>(out.data, in.data);
  const std::vector<int> got = out.get();
  for (int t = 0; t < 128; ++t)
    if (got[static_cast<size_t>(t)] != std::accumulate(x.begin() + t / 16 * 16, x.begin() + t / 16 * 16 + 16, 0)) return false;
  return true;
}

__global__ void vote(int* votes) {
  const int t = static_cast<int>(threadIdx.x);
  const int number = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t >= 0) + 2 * __syncthreads_and(t > 0);
  const int any = __syncthreads_or(t == 0) + 2 * __syncthreads_or(t < 0);
  votes[blockIdx.x * blockDim.x + threadIdx.x] = number * 16 + (all & 3) * 4 + (any & 3);
}

bool counts_votes() {
  for (const int threads : {1, 32, 40, 96, 256, 1024}) {
    const Array<int> votes(5 * threads);
    vote<<<5, threads>>>(votes.data);
    if (votes.get() != std::vector<int>(static_cast<size_t>(5 * threads), (threads + 2) / 3 * 16 + 4 + 1)) return false;
  }
  return true;
}

/// Neighbours in one word are written by different threads, warps and blocks.
template <class T>
__global__ void double_all(T* y, const T* x, int n) {
  __shared__ T tile[64];
  const int t = static_cast<int>(threadIdx.x), from = 63 - t;
  for (int begin = static_cast<int>(blockIdx.x) * 64; begin < n; begin += static_cast<int>(gridDim.x) * 64) {
    if (begin + t < n) tile[t] = x[begin + t];
    __syncthreads();
    if (begin + from < n) y[begin + from] = static_cast<T>(tile[from] * 2);
    __syncthreads();
  }
}

template <class T>
bool writes_neighbours_of() {
  constexpr int kN = 1001;
  std::vector<T> x(kN);
  for (int i = 0; i < kN; ++i) x[static_cast<size_t>(i)] = static_cast<T>(i % 100);
  const Array<T> from(x), to(kN);
  double_all<<<3, 64>>>(to.data + 1, from.data + 1, kN - 1);
  const std::vector<T> y = to.get();
  for (int i = 1; i < kN; ++i)
    if (y[static_cast<size_t>(i)] != static_cast<T>(i % 100 * 2)) return false;
  return y[0] == 0;
}
bool writes_neighbours() {
  return writes_neighbours_of<int>() && writes_neighbours_of<unsigned short>() && writes_neighbours_of<unsigned char>();
}

/// The last block adds up what all have written. Every thread fences, one thread counts.
__global__ void last_block_sum(int* sum, int* partial, unsigned* count, const int* x, int n) {
  __shared__ int mine[64];
  __shared__ bool is_last;
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const auto block_sum = [&](int value) {
    mine[t] = value;
    __syncthreads();
    for (int distance = 32; distance > 0; distance /= 2) {
      if (t < distance) mine[t] += mine[t + distance];
      __syncthreads();
    }
  };
  int value = 0;
  for (int i = block * 64 + t; i < n; i += blocks * 64) value += x[i];
  block_sum(value);
  if (t == 0) partial[block] = mine[0];
  __threadfence();
  __syncthreads();
  if (t == 63) is_last = atomicAdd(count, 1u) == static_cast<unsigned>(blocks - 1);
  __syncthreads();
  if (!is_last) return;
  value = 0;
  for (int i = t; i < blocks; i += 64) value += partial[i];
  block_sum(value);
  if (t == 0) {
    *sum = mine[0];
    *count = 0;
  }
}

/// Whichever thread of the machine runs the last block.
bool lets_the_last_block_read() {
  constexpr int kN = 4096;
  std::vector<int> x(kN);
  std::iota(x.begin(), x.end(), 0);
  const Array<int> from(x), partial(100), sum(1);
  const Array<unsigned> number(1);
  for (int launch = 0; launch < 100; ++launch) {
    last_block_sum<<<launch % 4 == 0 ? 17 : 64, 64>>>(sum.data, partial.data, number.data, from.data, kN);
    if (launch % 10 == 9 && sum.get()[0] != kN * (kN - 1) / 2) return false;
  }
  return number.get()[0] == 0;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// Each block adds what all blocks of its cluster hold in shared memory.
__global__ void cluster_sums(int* sums, int* ranks, const int* values) {
  __shared__ int mine;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  if (threadIdx.x == 0) mine = values[block];
  cluster.sync();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&mine, r);
    sums[block] = sum;
    ranks[block] = static_cast<int>(cluster.block_rank());
  }
  cluster.sync();
}
#else
__global__ void cluster_sums(int*, int*, const int*) {}
#endif

cudaError_t launch_clusters(dim3 grid, dim3 cluster, int* sums, int* ranks, const int* values) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t status = cudaLaunchKernelEx(&config, cluster_sums, sums, ranks, values);
  cudaGetLastError();
  return status;
}

bool numbers_blocks_of_clusters() {
  constexpr int kX = 6, kY = 4;
  std::vector<int> values;
  for (int i = 0; i < kX * kY; ++i) values.push_back(i * i);
  const Array<int> in(values), sums(kX * kY), ranks(kX * kY);
  const dim3 grid(kX, kY);
  for (const auto& [cx, cy] : {std::pair{1, 1}, {2, 1}, {3, 2}, {2, 4}}) {
    MUST(launch_clusters(grid, dim3(static_cast<unsigned>(cx), static_cast<unsigned>(cy)), sums.data, ranks.data, in.data));
    const std::vector<int> got = sums.get(), rank = ranks.get();
    for (int y = 0; y < kY; ++y)
      for (int x = 0; x < kX; ++x) {
        int sum = 0;
        for (int j = 0; j < cy; ++j)
          for (int i = 0; i < cx; ++i) sum += values[static_cast<size_t>(x / cx * cx + i + kX * (y / cy * cy + j))];
        const auto block = static_cast<size_t>(x + kX * y);
        if (got[block] != sum || rank[block] != x % cx + cx * (y % cy)) return false;
      }
  }
  return true;
}

bool refuses_other_clusters() {
  const Array<int> data(64);
  const auto launch = [&](dim3 grid, dim3 cluster) { return launch_clusters(grid, cluster, data.data, data.data, data.data); };
  return launch({5, 2}, {2, 1}) != cudaSuccess && launch({8, 2}, {8, 2}) == cudaErrorInvalidClusterSize;
}

// Arguments that a launch and a copy refuse.

bool refuses_launches() {
  const Array<int> out(2048);
  const auto refused = [&](dim3 grid, dim3 block, cudaError_t error) {
    indices<<<grid, block>>>(out.data);
    return cudaGetLastError() == error;
  };
  int devices = 0, most = 0;
  MUST(cudaGetDeviceCount(&devices));
  bool right = refused(1, 1025, cudaErrorInvalidConfiguration) && refused(0, 1, cudaErrorInvalidConfiguration) &&
               refused(1, dim3(1, 1, 65), cudaErrorInvalidConfiguration) && cudaSetDevice(devices) == cudaErrorInvalidDevice;
  cudaGetLastError();
  // Static and dynamic shared memory count together.
  MUST(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  right = right && most == (device.major == 8 && device.minor == 0 ? 163 : 227) * 1024;
  const int dynamic = most - static_cast<int>(256 * sizeof(int));
  right = right && cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic + 1) == cudaErrorInvalidValue;
  cudaGetLastError();
  MUST(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
  reverse<<<1, 1, dynamic>>>(out.data, out.data);
  MUST(cudaDeviceSynchronize());
  reverse<<<1, 1, dynamic + 1>>>(out.data, out.data);
  return cudaGetLastError() == cudaErrorInvalidValue && right;
}

bool refuses_copies_beyond() {
  const Array<int> data(64);
  std::vector<int> host(65);
  const bool right = cudaMemcpy(data.data, host.data(), 65 * sizeof(int), cudaMemcpyHostToDevice) == cudaErrorInvalidValue &&
                     cudaMemcpy(host.data(), data.data, 65 * sizeof(int), cudaMemcpyDeviceToHost) == cudaErrorInvalidValue;
  cudaGetLastError();
  return right;
}

// A copy may write directly after registered memory, which is the program's own.
bool copies_behind_registered_memory() {
  const Array<int> data(1);
  std::vector<int> host(2048);
  MUST(cudaHostRegister(host.data(), 1024 * sizeof(int), cudaHostRegisterDefault));
  const bool right = cudaMemcpy(&host[1024], data.data, sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess;
  MUST(cudaHostUnregister(host.data()));
  return right;
}

// Streams and events.

constexpr int kSize = 100;
constexpr size_t kBytes = kSize * sizeof(float);

__global__ void scale(float* y, const float* x, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kSize) y[i] = x[i] * factor;
}
void scale_on(cudaStream_t stream, const Array<float>& y, const Array<float>& x, float factor) {
  scale<<<2, 64, 0, stream>>>(y.data, x.data, factor);
}
bool holds(const Array<float>& array, float value) { return array.get() == std::vector<float>(kSize, value); }

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { MUST(cudaStreamCreateWithFlags(&handle, flags)); }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};
struct Event {
  Event() { MUST(cudaEventCreate(&handle)); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

/// Kernels, copies of both kinds of host memory, a fill, a host function, a captured fork and the default stream.
bool orders_everything() {
  const Stream a, b, blocking(cudaStreamDefault);
  const Event forked, joined;
  const Array<float> x(kSize), y(kSize), z(kSize);
  const auto order = [](cudaStream_t before, cudaEvent_t event, cudaStream_t after) {
    MUST(cudaEventRecord(event, before));
    MUST(cudaStreamWaitEvent(after, event));
  };
  float* pinned = nullptr;
  MUST(cudaMallocHost(&pinned, kBytes));
  const std::vector<float> pageable(kSize, 1.0f);
  MUST(cudaMemcpyAsync(x.data, pageable.data(), kBytes, cudaMemcpyDefault, a));
  scale_on(a, y, x, 2);
  MUST(cudaMemcpyAsync(pinned, y.data, kBytes, cudaMemcpyDefault, a));
  MUST(cudaLaunchHostFunc(
      a, [](void* data) { std::for_each_n(static_cast<float*>(data), kSize, [](float& v) { v += 1; }); }, pinned));
  order(a, forked, b);
  MUST(cudaMemcpyAsync(z.data, pinned, kBytes, cudaMemcpyDefault, b));
  MUST(cudaMemsetAsync(z.data, 0, 4 * sizeof(float), b));
  order(b, joined, a);

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  scale_on(a, y, z, 2);
  order(a, forked, b);
  scale_on(b, x, y, 5);
  order(b, joined, a);
  scale_on(a, z, x, 0.5f);
  MUST(cudaMemsetAsync(z.data + 4, 0, 4 * sizeof(float), a));
  MUST(cudaStreamEndCapture(a, &graph));
  MUST(cudaGraphInstantiate(&exec, graph));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaGraphLaunch(exec, a));
  MUST(cudaGraphLaunch(exec, a));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaMemcpyAsync(pinned, z.data, kBytes, cudaMemcpyDefault, a));
  MUST(cudaStreamSynchronize(a));

  // The default stream and a blocking one are ordered without events.
  MUST(cudaMemsetAsync(y.data, 0, kBytes));
  MUST(cudaMemcpyAsync(y.data, pinned, kBytes, cudaMemcpyDefault, blocking));
  scale_on(nullptr, x, y, 1);
  std::vector<float> expected(kSize, 75.0f);
  std::fill_n(expected.begin(), 8, 0.0f);
  const bool right = x.get() == expected;
  MUST(cudaFreeHost(pinned));
  return right;
}

__global__ void wait_for_host(const volatile int* flag) {
  while (*flag == 0) {
  }
}

/// Queries say what has not run, while a kernel waits for the host.
bool answers_queries() {
  const Stream stream;
  const Event begun, done;
  int* flag = nullptr;
  float milliseconds = -1;
  MUST(cudaMallocHost(&flag, sizeof(int)));
  *static_cast<volatile int*>(flag) = 0;
  MUST(cudaEventRecord(begun, stream));
  wait_for_host<<<1, 32, 0, stream>>>(flag);
  MUST(cudaEventRecord(done, stream));
  bool right = cudaStreamQuery(stream) == cudaErrorNotReady && cudaEventQuery(done) == cudaErrorNotReady &&
               cudaEventElapsedTime(&milliseconds, begun, done) == cudaErrorNotReady;
  cudaGetLastError();
  *static_cast<volatile int*>(flag) = 1;
  MUST(cudaEventSynchronize(done));
  MUST(cudaEventQuery(done));
  MUST(cudaStreamQuery(stream));
  MUST(cudaEventElapsedTime(&milliseconds, begun, done));
  MUST(cudaFreeHost(flag));
  return right && milliseconds >= 0;
}

// Captures.

/// A stream under capture, of this thread alone.
struct Capture {
  explicit Capture(unsigned flags = cudaStreamNonBlocking) : stream(flags) {
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (graph) cudaGraphDestroy(graph);
  }
  cudaError_t end() {
    const cudaError_t status = cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    return status;
  }
  Stream stream;
  cudaGraph_t graph = nullptr;
};

/// A capture forbids calls that need the host, and is lost by such a call.
bool forbids_the_host() {
  const Array<float> x(16);
  const Event event;
  MUST(cudaEventRecord(event));
  const auto forbidden = [](auto&& call, cudaError_t expected = cudaErrorStreamCaptureUnsupported) {
    Capture capture;
    const cudaError_t status = call(capture.stream.handle);
    cudaGetLastError();
    return status == expected && capture.end() == cudaErrorStreamCaptureInvalidated;
  };
  float host[16];
  void* memory = nullptr;
  return forbidden([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }) &&
         forbidden([](cudaStream_t) { return cudaDeviceSynchronize(); }) &&
         forbidden([&](cudaStream_t) { return cudaMalloc(&memory, 16); }) &&
         forbidden([&](cudaStream_t) { return cudaFree(x.data); }) &&
         forbidden([&](cudaStream_t) { return cudaMemcpy(host, x.data, 16, cudaMemcpyDefault); }) &&
         forbidden([&](cudaStream_t) { return cudaEventQuery(event); }) &&
         forbidden([&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, event); }, cudaErrorStreamCaptureIsolation);
}

bool keeps_events_of_captures_apart() {
  const Event event;
  Capture capture;
  MUST(cudaEventRecord(event, capture.stream));
  MUST(cudaStreamWaitEvent(capture.stream, event));
  bool right = capture.end() == cudaSuccess && cudaEventQuery(event) == cudaErrorCapturedEvent;
  cudaGetLastError();
  MUST(cudaEventRecord(event));
  MUST(cudaEventSynchronize(event));
  return right;
}

bool allows_memory_in_relaxed_mode() {
  Capture capture;
  void* memory = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  MUST(cudaThreadExchangeStreamCaptureMode(&mode));
  MUST(cudaMalloc(&memory, 16));
  MUST(cudaThreadExchangeStreamCaptureMode(&mode));
  const bool right = mode == cudaStreamCaptureModeRelaxed && capture.end() == cudaSuccess;
  MUST(cudaFree(memory));
  return right;
}

bool leaves_other_threads_free() {
  Capture capture;
  cudaError_t allocated = cudaErrorInvalidValue, ended = cudaSuccess;
  std::thread([&] {
    void* memory = nullptr;
    allocated = cudaMalloc(&memory, 16);
    cudaFree(memory);
    cudaGraph_t graph = nullptr;
    ended = cudaStreamEndCapture(capture.stream, &graph);
  }).join();
  return allocated == cudaSuccess && ended == cudaErrorStreamCaptureWrongThread && capture.end() == cudaSuccess;
}

bool never_captures_the_default_stream() {
  cudaGraph_t graph = nullptr;
  bool right = cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported;
  right = right && cudaStreamEndCapture(nullptr, &graph) != cudaSuccess;
  cudaGetLastError();
  const Array<float> x(kSize, 1.0f), y(kSize);
  Capture blocking(cudaStreamDefault);
  scale_on(nullptr, y, x, 2);
  right = right && cudaGetLastError() == cudaErrorStreamCaptureImplicit;
  return right && blocking.end() == cudaErrorStreamCaptureInvalidated;
}

bool wants_forks_joined() {
  const Array<float> x(kSize, 1.0f), y(kSize);
  const Stream other;
  const auto ends = [&](bool in_the_fork) {
    const Event event;
    Capture capture;
    MUST(cudaEventRecord(event, capture.stream));
    MUST(cudaStreamWaitEvent(other, event));
    scale_on(other, y, x, 2);
    cudaGraph_t graph = nullptr;
    const cudaError_t status = in_the_fork ? cudaStreamEndCapture(other, &graph) : capture.end();
    if (in_the_fork) capture.end();
    cudaGetLastError();
    return status;
  };
  const bool right = ends(true) == cudaErrorStreamCaptureUnmatched && ends(false) == cudaErrorStreamCaptureUnjoined;
  scale_on(other, y, x, 2);  // it is free again
  MUST(cudaStreamSynchronize(other));
  return right && holds(y, 2);
}

// Programs with an argument.

__global__ void write_null(float* nothing) { nothing[3] = 1; }

/// A fault stays: every later call returns it.
int sticky() {
  float* data = nullptr;
  MUST(cudaMalloc(&data, kBytes));
  const Stream stream;
  write_null<<<1, 1, 0, stream>>>(nullptr);
  void* more = nullptr;
  for (const cudaError_t status : {cudaStreamSynchronize(stream), cudaMemset(data, 0, 4), cudaMalloc(&more, 16),
                                   cudaDeviceSynchronize(), cudaGetLastError()})
    std::printf("%s\n", cudaGetErrorName(status));
  write_null<<<1, 1, 0, stream>>>(data);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  return 1;
}

int fault_in_a_graph() {
  Capture capture;
  write_null<<<1, 1, 0, capture.stream>>>(nullptr);
  MUST(capture.end());
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, capture.graph));
  // The launch reports the fault itself where the kernel has run before it returns.
  cudaError_t status = cudaGraphLaunch(exec, capture.stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(capture.stream);
  std::printf("%s\n", cudaGetErrorName(status));
  return 1;
}

/// Only the emulator fills new memory, so that its reads are visible.
int new_memory() {
  float *data = nullptr, host[1000];
  MUST(cudaMalloc(&data, sizeof(host)));
  MUST(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
  std::printf("%td of 1000 are NaN\n", std::ranges::count_if(host, [](float v) { return std::isnan(v); }));
  return 0;
}

/// A reset frees the device's memory, so three times fit what would not fit together.
int reset() {
  float* data = nullptr;
  for (int i = 0; i < 3; ++i) {
    MUST(cudaMalloc(&data, 300 << 20));
    MUST(cudaDeviceReset());
  }
  write_null<<<1, 1>>>(data);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  if (asked == "sticky") return sticky();
  if (asked == "fault_in_a_graph") return fault_in_a_graph();
  if (asked == "new_memory") return new_memory();
  if (asked == "reset") return reset();
  return keep_promises({
      {"runs_every_thread_once", runs_every_thread_once},
      {"reverses_blocks", reverses_blocks},
      {"adds_atomically", adds_atomically},
      {"adds_by_swaps", adds_by_swaps},
      {"exchanges_between_lanes", exchanges_between_lanes},
      {"sums_half_warps", sums_half_warps},
      {"counts_votes", counts_votes},
      {"writes_neighbours", writes_neighbours},
      {"lets_the_last_block_read", lets_the_last_block_read},
      {"numbers_blocks_of_clusters", numbers_blocks_of_clusters, 90},
      {"refuses_other_clusters", refuses_other_clusters, 90},
      {"refuses_launches", refuses_launches},
      {"refuses_copies_beyond", refuses_copies_beyond},
      {"copies_behind_registered_memory", copies_behind_registered_memory},
      {"orders_everything", orders_everything},
      {"answers_queries", answers_queries},
      {"forbids_the_host", forbids_the_host},
      {"keeps_events_of_captures_apart", keeps_events_of_captures_apart},
      {"allows_memory_in_relaxed_mode", allows_memory_in_relaxed_mode},
      {"leaves_other_threads_free", leaves_other_threads_free},
      {"never_captures_the_default_stream", never_captures_the_default_stream},
      {"wants_forks_joined", wants_forks_joined},
  });
}
