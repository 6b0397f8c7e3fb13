// SPDX-License-Identifier: Apache-2.0
// The guarantees of a GPU, one small kernel for each, as a stand-alone CUDA program: it passes on a GPU and
// must pass on the emulator, in every order of streams, blocks and warps. Prints `ok NAME` or `FAILED NAME`; exits with 1 on failure.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "promises.h"

namespace cg = cooperative_groups;

namespace {

// Lanes, warps, blocks.

__global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int partial[32];
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) sum += in[i];
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
    if (threadIdx.x == 0) *out = sum;
  }
}

bool sums_a_block() {
  std::vector<int> v(10000);
  std::iota(v.begin(), v.end(), -77);
  Array<int> in(v), out(1);
  block_sum<<<1, 256>>>(in.data, out.data, in.count);
  return out.get()[0] == std::accumulate(v.begin(), v.end(), 0);
}

/// Halves of a warp take different ways with different loop counts and meet again.
__global__ void diverge(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane % 2) {
    for (int i = 0; i < lane; ++i) value += i % 3;
    value += __shfl_sync(0xaaaaaaaau, value, 1);
  } else {
    value = __reduce_add_sync(0x55555555u, value);
  }
  __syncwarp();
  out[lane] = value + __shfl_sync(~0u, value, 0);
}

bool meets_again() {
  Array<int> out(32);
  diverge<<<1, 32>>>(out.data);
  const std::vector<int> got = out.get();
  std::vector<int> value(32);
  int even = 0;
  for (int l = 0; l < 32; l += 2) even += l;
  for (int l = 0; l < 32; ++l) {
    value[l] = l;
    for (int i = 0; l % 2 && i < l; ++i) value[l] += i % 3;
  }
  const int one = value[1];
  for (int l = 0; l < 32; ++l) {
    const int expected = (l % 2 ? value[l] + one : even) + even;
    if (got[l] != expected) return false;
  }
  return true;
}

/// A lock that lanes of one warp take in turn: right only where lanes run on their own.
__global__ void locked(int* lock, int* count) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      volatile int* const seen = count;
      *seen = *seen + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

bool lanes_take_a_lock() {
  Array<int> lock(1), count(1);
  locked<<<3, 64>>>(lock.data, count.data);
  return count.get()[0] == 192;
}

/// Each block waits for the previous block.
__global__ void chained(volatile int* flags, int* order) {
  if (threadIdx.x == 0) {
    while (blockIdx.x > 0 && flags[blockIdx.x - 1] == 0) {
    }
    __threadfence();
    order[blockIdx.x] = blockIdx.x == 0 ? 1 : order[blockIdx.x - 1] + 1;
    __threadfence();
    flags[blockIdx.x] = 1;
  }
}

bool blocks_wait_for_blocks() {
  Array<int> flags(40), order(40);
  chained<<<40, 32>>>(flags.data, order.data);
  return order.get()[39] == 40;
}

__global__ void grid_sync(int* data, int n) {
  const cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < 3; ++round) {
    const int i = static_cast<int>(grid.thread_rank());
    const int next = data[(round % 2) * n + (i + 1) % n];
    data[((round + 1) % 2) * n + i] = next;
    grid.sync();
  }
}

bool grids_synchronise() {
  constexpr int kN = 16 * 64;
  std::vector<int> v(2 * kN);
  std::iota(v.begin(), v.begin() + kN, 0);
  Array<int> data(v);
  int n = kN;
  void* arguments[] = {&data.data, &n};
  MUST(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_sync), dim3(16), dim3(64), arguments, 0, nullptr));
  const std::vector<int> got = data.get();
  for (int i = 0; i < kN; ++i)
    if (got[kN + i] != (i + 3) % kN) return false;
  return true;
}

__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned mine[256];
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) mine[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += static_cast<int>(gridDim.x * blockDim.x))
    atomicAdd(&mine[in[i]], 1u);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) atomicAdd(&bins[i], mine[i]);
}

bool counts_a_histogram() {
  std::vector<unsigned char> v(40000);
  std::vector<unsigned> expected(256);
  for (size_t i = 0; i < v.size(); ++i) ++expected[v[i] = static_cast<unsigned char>(i * i >> 3)];
  Array<unsigned char> in(v);
  Array<unsigned> bins(256);
  histogram<<<7, 160>>>(in.data, bins.data, in.count);
  return bins.get() == expected;
}

__constant__ float table[8];
__device__ int counter = 5;

__global__ void variables(float* out) {
  out[threadIdx.x] = table[threadIdx.x] * static_cast<float>(counter);
  float local[8];
  for (int i = 0; i < 8; ++i) local[(i * 3) % 8] = static_cast<float>(i);
  out[8 + threadIdx.x] = local[threadIdx.x];
}

bool has_variables() {
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  MUST(cudaMemcpyToSymbol(table, values, sizeof(values)));
  int five = 0;
  MUST(cudaMemcpyFromSymbol(&five, counter, sizeof(five)));
  Array<float> out(16);
  variables<<<1, 8>>>(out.data);
  const std::vector<float> got = out.get();
  for (int i = 0; i < 8; ++i)
    if (five != 5 || got[i] != values[i] * 5 || got[8 + (i * 3) % 8] != static_cast<float>(i)) return false;
  return true;
}

/// A float's way through bf16, f16 and the fast functions.
__global__ void numbers(const float* in, float* out, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  const float x = in[i];
  out[i] = __bfloat162float(__float2bfloat16(x));
  out[n + i] = __half2float(__hfma(__float2half(x), __float2half(2.0f), __float2half(1.0f)));
  out[2 * n + i] = expf(x) / (1.0f + fabsf(x)) + sqrtf(fabsf(x)) + tanhf(x);
  out[3 * n + i] = static_cast<float>(static_cast<int>(x * 1000) / 7 % 13);
  out[4 * n + i] = static_cast<float>(__popc(__float_as_int(x)) + __clz(__float_as_int(x)) + __brev(static_cast<unsigned>(i)) % 7);
  out[5 * n + i] = static_cast<float>(sin(static_cast<double>(x)) * 1e3);
}

bool computes_numbers() {
  std::vector<float> v;
  for (int i = 0; i < 32; ++i) v.push_back(static_cast<float>(i - 16) * 0.37f + 0.011f);
  const int n = static_cast<int>(v.size());
  Array<float> in(v), out(6 * n);
  numbers<<<1, 32>>>(in.data, out.data, n);
  const std::vector<float> got = out.get();
  bool right = true;
  const auto close = [&](float a, double b, double tolerance) { right = right && std::fabs(a - b) <= tolerance * (1 + std::fabs(b)); };
  for (int i = 0; i < n; ++i) {
    const double x = v[static_cast<size_t>(i)];
    close(got[i], x, 1.0 / 256);
    close(got[n + i], 2 * x + 1, 1.0 / 1024);
    close(got[2 * n + i], std::exp(x) / (1 + std::fabs(x)) + std::sqrt(std::fabs(x)) + std::tanh(x), 1e-5);
    right = right && got[3 * n + i] == static_cast<float>(static_cast<int>(v[static_cast<size_t>(i)] * 1000) / 7 % 13);
    close(got[5 * n + i], std::sin(x) * 1e3, 1e-5);
  }
  return right;
}

// Clusters, asynchronous copies.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(4, 1, 1) cluster_ring(int* out) {
  __shared__ int mine;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = static_cast<int>(blockIdx.x) * 10;
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&mine, next);
  cluster.sync();
}

__global__ void bulk_copy(const float* from, float* to) {
  __shared__ alignas(128) float tile[256];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) {
      asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], 1024; }" ::"r"(address));
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(place),
                   "l"(from + 256 * round), "r"(address)
                   : "memory");
    }
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(address), "r"(-(round & 1))  // a bit, sign-extended as compilers do
                   : "memory");
    to[256 * round + static_cast<int>(threadIdx.x)] = tile[threadIdx.x] * 2;
    __syncthreads();
  }
}

#else
__global__ void cluster_ring(int*) {}
__global__ void bulk_copy(const float*, float*) {}
#endif

/// Lane l copies l % 17 of its 16 bytes, the last lanes all of them, and zeros follow.
__global__ void copy_parts(const unsigned char* from, unsigned char* to) {
  __shared__ alignas(16) unsigned char tile[32 * 16];
  const int lane = static_cast<int>(threadIdx.x), bytes = lane % 17;
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(tile + 16 * lane));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from + 16 * lane), "r"(bytes)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int i = 0; i < 16; ++i) to[16 * lane + i] = tile[16 * lane + i];
}

bool copies_parts() {
  std::vector<unsigned char> bytes(32 * 16);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 251 + 1);
  Array<unsigned char> from(bytes), to(32 * 16);
  copy_parts<<<1, 32>>>(from.data, to.data);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = lane % 17; i < 16; ++i) bytes[16 * lane + i] = 0;
  return to.get() == bytes;
}

bool clusters_share_memory() {
  Array<int> out(8);
  cluster_ring<<<8, 32>>>(out.data);
  return out.get() == std::vector<int>{10, 20, 30, 0, 50, 60, 70, 40};
}

bool copies_in_bulk() {
  std::vector<float> v(768);
  std::iota(v.begin(), v.end(), 0.0f);
  Array<float> from(v), to(768);
  bulk_copy<<<1, 256>>>(from.data, to.data);
  const std::vector<float> got = to.get();
  for (size_t i = 0; i < v.size(); ++i)
    if (got[i] != 2 * v[i]) return false;
  return true;
}

// Streams, events, graphs.

__global__ void add(float* data, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] = data[i] * 2 + value;
}

bool orders_streams() {
  constexpr int kN = 1000;
  Array<float> data(kN);
  float* host = nullptr;
  MUST(cudaMallocHost(&host, kN * sizeof(float)));
  cudaStream_t a, b;
  cudaEvent_t done;
  MUST(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  MUST(cudaEventCreate(&done));
  for (int i = 0; i < 4; ++i) {
    cudaStream_t from = i % 2 ? b : a, to = i % 2 ? a : b;
    add<<<4, 256, 0, from>>>(data.data, static_cast<float>(i), kN);
    MUST(cudaEventRecord(done, from));
    MUST(cudaStreamWaitEvent(to, done));
  }
  MUST(cudaMemcpyAsync(host, data.data, kN * sizeof(float), cudaMemcpyDeviceToHost, a));
  MUST(cudaStreamSynchronize(a));
  const bool right = host[kN - 1] == ((0 * 2 + 1) * 2 + 2) * 2 + 3;
  MUST(cudaEventDestroy(done));
  MUST(cudaStreamDestroy(a));
  MUST(cudaStreamDestroy(b));
  MUST(cudaFreeHost(host));
  return right;
}

/// Four bytes or two halves of a word at once.
__global__ void parts_of_words(const unsigned* in, unsigned* out) {
  const unsigned a = in[0], b = in[1], c = in[2];
#define VIDEO(n, text) asm(text " %0, %1, %2, %3;" : "=r"(out[n]) : "r"(a), "r"(b), "r"(c))
  VIDEO(0, "vabsdiff4.u32.u32.u32.add");
  VIDEO(1, "vabsdiff4.u32.s32.s32");
  VIDEO(2, "vadd4.s32.s32.s32.sat");
  VIDEO(3, "vadd2.u32.u32.u32");
  VIDEO(4, "vsub2.s32.s32.s32.sat");
  VIDEO(5, "vavrg4.u32.u32.u32");
  VIDEO(6, "vavrg4.s32.s32.s32");
  VIDEO(7, "vmin4.s32.s32.s32");
  VIDEO(8, "vmax2.u32.u32.u32");
#undef VIDEO
}

bool computes_parts_of_words() {
  const Array<unsigned> in({0x807f0105u, 0x7f010208u, 1000}), out(9);
  parts_of_words<<<1, 1>>>(in.data, out.data);
  // Bytes 80 7f 01 05 and 7f 01 02 08; halves 807f 0105 and 7f01 0208.
  return out.get() == std::vector<unsigned>{1 + 0x7e + 1 + 3 + 1000, 0xff7e0103, 0xff7f030d, 0xff80030d, 0x8000fefd,
                                            0x80400207, 0xff400207, 0x80010105, 0x807f0208};
}

bool replays_graphs() {
  constexpr int kN = 512;
  Array<float> data(kN), side(kN);
  cudaStream_t main, fork;
  cudaEvent_t begin, end;
  MUST(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
  MUST(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
  MUST(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  MUST(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  add<<<2, 256, 0, main>>>(data.data, 1, kN);
  MUST(cudaEventRecord(begin, main));
  MUST(cudaStreamWaitEvent(fork, begin));
  MUST(cudaMemcpyAsync(side.data, data.data, kN * sizeof(float), cudaMemcpyDeviceToDevice, fork));
  add<<<2, 256, 0, fork>>>(side.data, 10, kN);
  MUST(cudaEventRecord(end, fork));
  MUST(cudaStreamWaitEvent(main, end));
  add<<<2, 256, 0, main>>>(data.data, 0, kN);
  cudaGraph_t graph;
  MUST(cudaStreamEndCapture(main, &graph));
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) MUST(cudaGraphLaunch(exec, main));
  MUST(cudaStreamSynchronize(main));
  float x = 0, s = 0;
  for (int i = 0; i < 3; ++i) {
    x = x * 2 + 1;
    s = x * 2 + 10;
    x = x * 2;
  }
  const bool right = data.get()[kN - 1] == x && side.get()[0] == s;
  MUST(cudaGraphExecDestroy(exec));
  return right;
}

/// Who frees a graph's memory outside of it leaves the address to the next launch.
bool frees_a_graphs_memory_outside() {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams allocation{};
  allocation.bytesize = 1024;
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  cudaGraphNode_t allocates, fills;
  MUST(cudaGraphAddMemAllocNode(&allocates, graph, nullptr, 0, &allocation));
  cudaMemsetParams fill{};
  fill.dst = allocation.dptr;
  fill.elementSize = 1;
  fill.width = 1024;
  fill.height = 1;
  fill.value = 7;
  MUST(cudaGraphAddMemsetNode(&fills, graph, &allocates, 1, &fill));
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (int launch = 0; launch < 3; ++launch) {
    char last = 0;
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaMemcpyAsync(&last, static_cast<char*>(allocation.dptr) + 1023, 1, cudaMemcpyDeviceToHost, stream));
    if (launch % 2 == 0) MUST(cudaFreeAsync(allocation.dptr, stream));
    MUST(cudaStreamSynchronize(stream));
    if (launch % 2 != 0) MUST(cudaFree(allocation.dptr));
    right = right && last == 7;
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  return right;
}

__global__ void count_down(int* left, cudaGraphConditionalHandle again) {
  if (threadIdx.x == 0) cudaGraphSetConditional(again, --*left > 0);
}

__global__ void choose(const int* which, cudaGraphConditionalHandle handle) {
  if (threadIdx.x == 0) cudaGraphSetConditional(handle, static_cast<unsigned>(*which));
}

struct Conditional {
  cudaGraphNode_t node;
  cudaGraph_t* bodies;
};

Conditional add_conditional(cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, cudaGraphConditionalHandle handle,
                            cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = size;
  Conditional added{};
  MUST(cudaGraphAddNode(&added.node, graph, after, nullptr, count, &p));
  added.bodies = p.conditional.phGraph_out;
  return added;
}

/// Puts what `work` launches into a stream into the graph.
template <class F>
void capture_into(cudaGraph_t graph, const F& work) {
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  work(stream);
  MUST(cudaStreamEndCapture(stream, nullptr));
  MUST(cudaStreamDestroy(stream));
}

/// IF with an else, and SWITCH: each graph adds a number of its own, a value without a graph adds nothing.
bool chooses_a_graph(cudaGraphConditionalNodeType type, unsigned size, const std::vector<int>& values,
                     const std::vector<float>& expected) {
  const Array<float> data(32);
  const Array<int> which(1);
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  const cudaGraphNode_t* tail;
  size_t count = 0;
  MUST(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &tail, nullptr, &count));
  cudaGraphConditionalHandle handle;
  MUST(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  choose<<<1, 32, 0, stream>>>(which.data, handle);
  MUST(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &tail, nullptr, &count));
  const Conditional chosen = add_conditional(graph, tail, count, handle, type, size);
  MUST(cudaStreamUpdateCaptureDependencies(stream, const_cast<cudaGraphNode_t*>(&chosen.node), nullptr, 1, cudaStreamSetCaptureDependencies));
  add<<<1, 32, 0, stream>>>(data.data, 0.5f, 32);  // after the node, whatever it runs
  MUST(cudaStreamEndCapture(stream, &graph));
  for (unsigned k = 0; k < size; ++k)
    capture_into(chosen.bodies[k], [&](cudaStream_t s) { add<<<1, 32, 0, s>>>(data.data, static_cast<float>(k + 1), 32); });
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (size_t i = 0; i < values.size(); ++i) {
    MUST(cudaMemsetAsync(data.data, 0, 32 * sizeof(float), stream));
    MUST(cudaMemcpyAsync(which.data, &values[i], sizeof(int), cudaMemcpyHostToDevice, stream));
    MUST(cudaGraphLaunch(exec, stream));
    float got = 0;
    MUST(cudaMemcpyAsync(&got, data.data + 31, sizeof got, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    right = right && got == expected[i];
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  return right;
}

bool chooses_graphs() {
  return chooses_a_graph(cudaGraphCondTypeIf, 1, {0, 1, 7}, {0.5f, 2.5f, 2.5f}) &&
         chooses_a_graph(cudaGraphCondTypeIf, 2, {0, 1, 0}, {4.5f, 2.5f, 4.5f}) &&
         chooses_a_graph(cudaGraphCondTypeSwitch, 3, {2, 0, 3, 1}, {6.5f, 2.5f, 0.5f, 4.5f});
}

/// A loop in a loop; the outer one begins by its default value.
bool repeats_graphs() {
  const Array<float> data(32);
  const Array<int> outer(1), inner(1);
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle again, inside;
  MUST(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
  const Conditional loop = add_conditional(graph, nullptr, 0, again, cudaGraphCondTypeWhile, 1);
  MUST(cudaGraphConditionalHandleCreate(&inside, loop.bodies[0], 0, 0));
  const int four = 4;
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // The body: 4 to `inner`, the first decision, the inner loop, then the outer one's decision.
  cudaGraphNode_t set;
  cudaMemsetParams fill{};
  fill.dst = inner.data;
  fill.elementSize = 4;
  fill.width = 1;
  fill.height = 1;
  fill.value = four;
  MUST(cudaGraphAddMemsetNode(&set, loop.bodies[0], nullptr, 0, &fill));
  const auto kernel = [&](cudaGraph_t into, const cudaGraphNode_t* after, size_t count, int* left,
                          cudaGraphConditionalHandle handle) {
    void* arguments[] = {&left, &handle};
    cudaKernelNodeParams p{reinterpret_cast<void*>(count_down), dim3(1), dim3(32), 0, arguments, nullptr};
    cudaGraphNode_t node;
    MUST(cudaGraphAddKernelNode(&node, into, after, count, &p));
    return node;
  };
  const cudaGraphNode_t first = kernel(loop.bodies[0], &set, 1, inner.data, inside);
  const Conditional nested = add_conditional(loop.bodies[0], &first, 1, inside, cudaGraphCondTypeWhile, 1);
  kernel(loop.bodies[0], &nested.node, 1, outer.data, again);
  capture_into(nested.bodies[0], [&](cudaStream_t s) {
    add<<<1, 32, 0, s>>>(data.data, 1, 32);
    count_down<<<1, 32, 0, s>>>(inner.data, inside);
  });
  cudaGraphExec_t exec;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (const int rounds : {3, 1}) {  // 4 - 1 times a round: x -> 2x + 1
    MUST(cudaMemsetAsync(data.data, 0, 32 * sizeof(float), stream));
    MUST(cudaMemcpyAsync(outer.data, &rounds, sizeof(int), cudaMemcpyHostToDevice, stream));
    MUST(cudaGraphLaunch(exec, stream));
    add<<<1, 32, 0, stream>>>(data.data, 0, 32);
    float got = 0;
    MUST(cudaMemcpyAsync(&got, data.data, sizeof got, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    right = right && got == static_cast<float>(2 * ((1 << 3 * rounds) - 1));
  }
  // Calls that CUDA refuses.
  cudaGraph_t other;
  cudaGraphNode_t child;
  right = right && cudaGraphClone(&other, graph) == cudaErrorNotSupported;
  MUST(cudaGraphCreate(&other, 0));
  right = right && cudaGraphAddChildGraphNode(&child, other, nullptr, 0, graph) == cudaErrorNotSupported;
  cudaHostNodeParams host{[](void*) {}, nullptr};
  MUST(cudaGraphAddHostNode(&child, nested.bodies[0], nullptr, 0, &host));
  cudaGraphExec_t none = nullptr;
  right = right && cudaGraphInstantiate(&none, graph, 0) == cudaErrorNotSupported;
  cudaGetLastError();
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(other));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  return right;
}

bool calls_the_host() {
  int called = 0;
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  for (int i = 0; i < 3; ++i)
    MUST(cudaLaunchHostFunc(stream, [](void* p) { ++*static_cast<int*>(p); }, &called));
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaStreamDestroy(stream));
  return called == 3;
}

bool allocates_in_stream_order() {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  float* data = nullptr;
  MUST(cudaMallocAsync(&data, 1024, stream));
  MUST(cudaMemsetAsync(data, 0, 1024, stream));
  add<<<1, 256, 0, stream>>>(data, 3, 256);
  float last = 0;
  MUST(cudaMemcpyAsync(&last, data + 255, sizeof(float), cudaMemcpyDeviceToHost, stream));
  MUST(cudaFreeAsync(data, stream));
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaStreamDestroy(stream));
  return last == 3;
}

/// PTX has a register for each of these numbers at once; ptxas would spill what a block of 1,024 threads has no room for.
__global__ void many_numbers(const int* from, int* to) {
  int values[100];
#pragma unroll
  for (int i = 0; i < 100; ++i) values[i] = from[i] + threadIdx.x;
  __syncthreads();
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 100; ++i) sum = sum * 3 + values[i];
  to[threadIdx.x] = sum;
}

bool launches_many_registers() {
  int *from = nullptr, *to = nullptr, all[1024];
  MUST(cudaMalloc(&from, 100 * sizeof(int)));
  MUST(cudaMalloc(&to, sizeof all));
  MUST(cudaMemset(from, 0, 100 * sizeof(int)));
  many_numbers<<<1, 1024>>>(from, to);
  MUST(cudaMemcpy(all, to, sizeof all, cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < 1024; ++i) {
    unsigned sum = 0;
    for (int k = 0; k < 100; ++k) sum = sum * 3 + unsigned(i);
    right = right && all[i] == int(sum);
  }
  MUST(cudaFree(from));
  MUST(cudaFree(to));
  return right;
}

/// Block 0 stores pairs of equal numbers, block 1 counts those that differ.
__global__ void exchange_pairs(uint2* small, ulonglong2* large, int* torn, unsigned rounds) {
  small += threadIdx.x, large += threadIdx.x;
  for (unsigned k = 0; k < rounds; ++k) {
    const auto wide = static_cast<unsigned long long>(k);
    if (blockIdx.x == 0) {
      asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %1};" ::"l"(small), "r"(k) : "memory");
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %1};" ::"l"(large), "l"(wide) : "memory");
    } else {
      uint2 a;
      ulonglong2 b;
      asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(a.x), "=r"(a.y) : "l"(small) : "memory");
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(b.x), "=l"(b.y) : "l"(large) : "memory");
      if (a.x != a.y) atomicAdd(torn, 1);
      if (b.x != b.y) atomicAdd(torn + 1, 1);
    }
  }
}

/// Scans by decoupled look-back depend on it.
bool accesses_pairs_at_once() {
  char* memory = nullptr;
  int torn[2];
  MUST(cudaMalloc(&memory, 2048));
  MUST(cudaMemset(memory, 0, 2048));
  exchange_pairs<<<2, 32>>>(reinterpret_cast<uint2*>(memory), reinterpret_cast<ulonglong2*>(memory + 512), reinterpret_cast<int*>(memory + 1024), 100000);
  MUST(cudaMemcpy(torn, memory + 1024, sizeof torn, cudaMemcpyDeviceToHost));
  MUST(cudaFree(memory));
  return torn[0] == 0 && torn[1] == 0;
}

__global__ void divide(unsigned* flags, __int128* quotients, __int128* remainders, const __int128* a, const __int128* b) {
  const int i = static_cast<int>(threadIdx.x);
  quotients[i] = a[i] / b[i];
  remainders[i] = a[i] % b[i];
  if (i > 0) return;
  asm volatile("{ .reg .u32 r; add.cc.u32 r, 0, 0; subc.u32 %0, 0, 0; }" : "=r"(flags[0]));
  asm volatile("{ .reg .u32 r; sub.cc.u32 r, 5, 3; addc.u32 %0, 0, 0; }" : "=r"(flags[1]));
  asm volatile("{ .reg .u32 r; sub.cc.u32 r, 3, 5; addc.u32 %0, 0, 0; }" : "=r"(flags[2]));
  asm volatile("{ .reg .u32 r; sub.cc.u32 r, 3, 5; subc.u32 %0, 0, 0; }" : "=r"(flags[3]));
}

/// A subtraction sets the carry where it borrows nothing; nvcc's division of 128 bits reads it with addc.
bool divides_128_bits() {
  std::vector<__int128> a, b;
  for (int i = 0; i < 64; ++i) {
    a.push_back((static_cast<__int128>(0x123456789abcdef0LL + i) << (i + 2)) * (i % 2 == 0 ? 1 : -1) + 977 * i);
    b.push_back((static_cast<__int128>(0xfedcba987ULL) << i) + 12345 * i + 1);
  }
  const Array<__int128> x(a), y(b), quotients(64), remainders(64);
  const Array<unsigned> flags(4);
  divide<<<1, 64>>>(flags.data, quotients.data, remainders.data, x.data, y.data);
  const std::vector<__int128> q = quotients.get(), r = remainders.get();
  for (size_t i = 0; i < 64; ++i)
    if (q[i] != a[i] / b[i] || r[i] != a[i] % b[i]) return false;
  return flags.get() == std::vector<unsigned>{~0u, 1, 0, ~0u};
}

/// Freed memory stays reserved up to the pool's threshold.
bool keeps_freed_memory_of_a_pool() {
  cudaMemPool_t pool;
  MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
  const auto reserved = [&] {
    uint64_t bytes = 0;
    MUST(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
    return bytes;
  };
  const auto use = [&](uint64_t threshold) {
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    void* memory = nullptr;
    MUST(cudaMallocAsync(&memory, 20000, nullptr));
    MUST(cudaFreeAsync(memory, nullptr));
    MUST(cudaDeviceSynchronize());
  };
  use(UINT64_MAX);
  const uint64_t kept = reserved();
  MUST(cudaMemPoolTrimTo(pool, 0));
  const uint64_t trimmed = reserved();
  use(0);
  return kept >= 20000 && trimmed == 0 && reserved() == 0;
}

}  // namespace

int main() {
  return keep_promises({
      {"sums_a_block", sums_a_block},
      {"meets_again", meets_again},
      {"lanes_take_a_lock", lanes_take_a_lock},
      {"blocks_wait_for_blocks", blocks_wait_for_blocks},
      {"grids_synchronise", grids_synchronise},
      {"counts_a_histogram", counts_a_histogram},
      {"has_variables", has_variables},
      {"computes_numbers", computes_numbers},
      {"computes_parts_of_words", computes_parts_of_words},
      {"copies_parts", copies_parts},
      {"clusters_share_memory", clusters_share_memory, 90},
      {"copies_in_bulk", copies_in_bulk, 90},
      {"orders_streams", orders_streams},
      {"replays_graphs", replays_graphs},
      {"chooses_graphs", chooses_graphs},
      {"repeats_graphs", repeats_graphs},
      {"frees_a_graphs_memory_outside", frees_a_graphs_memory_outside},
      {"calls_the_host", calls_the_host},
      {"allocates_in_stream_order", allocates_in_stream_order},
      {"launches_many_registers", launches_many_registers},
      {"accesses_pairs_at_once", accesses_pairs_at_once},
      {"divides_128_bits", divides_128_bits},
      {"keeps_freed_memory_of_a_pool", keeps_freed_memory_of_a_pool},
  });
}
