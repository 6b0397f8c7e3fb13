// SPDX-License-Identifier: Apache-2.0
// Programs with one planted fault each, named by the argument: tests/emulator/CMakeLists.txt has the emulator's expected report.
// A name with `_right` is the repaired twin, which must pass in silence.
#undef NDEBUG  // its assertion is to be met
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

__global__ void write_at(float* data, int index) { data[index] = 1; }

__global__ void read_misaligned(const char* data, float* out) { *out = *reinterpret_cast<const float*>(data + 1); }

__global__ void shared_beyond(float* out, int index) {
  extern __shared__ float tile[];
  tile[index] = 1;
  __syncthreads();
  *out = tile[0];
}

__global__ void divergent_barrier(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  // The other warp waits at a barrier of its own, which the first one never meets.
  if (threadIdx.x >= 32) asm volatile("barrier.sync 1, 64;");
  *out = 1;
}

__global__ void missing_arrival(int* out) {
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(address));
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(address));
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address)
        : "memory");
  *out = 1;
}

__global__ void stop() { asm volatile("trap;"); }

__device__ int never = 1;
__global__ void assertion() {
  assert(never == 0);
}

__constant__ int table[4] = {1, 2, 3, 4};
__global__ void constant_by_pointer(int* out, bool writes) {
  int* const entry = const_cast<int*>(table) + threadIdx.x;
  *(writes ? entry : out) = 7;
  *out += *entry;
}

/// A barrier of all blocks, which block 1 does not meet.
__global__ void grid_barrier(int* data, bool all) {
  if (!all && blockIdx.x == 1) return;
  atomicAdd(data, 1);
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) data[1 + blockIdx.x] = *data;
}

/// A lock that is never given back.
__global__ void lock_taken_twice(int* lock, bool gives_back) {
  for (int i = 0; i < 2; ++i) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    if (gives_back) atomicExch(lock, 0);
  }
}

/// A kernel waits for the host, or for earlier blocks.
__global__ void wait_for_host(const volatile int* flag, int* out) {
  while (*flag == 0) {
  }
  *out = *flag;
}
__global__ void one_after_the_other(volatile int* turn) {
  if (threadIdx.x != 0) return;
  while (*turn != static_cast<int>(gridDim.x - blockIdx.x)) {
  }
  __threadfence();
  *turn = *turn + 1;
}

/// A copy that is read before its wait: NaN, on any GPU perhaps.
__global__ void copy_without_wait(const float* from, float* to, bool waits) {
  __shared__ alignas(16) float tile[128];
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x * 4]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from + threadIdx.x * 4) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (waits) asm volatile("cp.async.wait_group 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) to[threadIdx.x * 4 + i] = tile[threadIdx.x * 4 + i];
}

__global__ void slow(float* data, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) data[i] += 1;
}
__global__ void copy(const float* from, float* to, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) to[i] = from[i];
}

int report(cudaError_t status) {
  std::printf("%s\n", cudaGetErrorName(status));
  return status == cudaSuccess ? 0 : 1;
}

float* floats(int n) {
  float* data = nullptr;
  if (cudaMalloc(&data, static_cast<size_t>(n) * sizeof(float)) != cudaSuccess) std::abort();
  cudaMemset(data, 0, static_cast<size_t>(n) * sizeof(float));
  return data;
}

/// Two streams and no order between them: right only where the second happens to run later.
int streams(bool ordered) {
  constexpr int kN = 1 << 12;
  float *a = floats(kN), *b = floats(kN);
  cudaStream_t producer, consumer;
  cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking);
  cudaEvent_t ready;
  cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  cudaDeviceSynchronize();
  slow<<<1, 32, 0, producer>>>(a, kN);
  cudaEventRecord(ready, producer);
  if (ordered) cudaStreamWaitEvent(consumer, ready);
  copy<<<1, 32, 0, consumer>>>(a, b, kN);
  float last = 0;
  cudaStreamSynchronize(consumer);
  cudaMemcpy(&last, b + kN - 1, sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("last %g\n", last);
  return last == 1 ? 0 : 1;
}

/// The host overwrites a pageable buffer that a copy may still read: a GPU without the host's page tables has a copy of it.
int pageable(bool waits) {
  int* data = nullptr;
  cudaMalloc(&data, sizeof(int));
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  std::vector<int> host{1};
  cudaMemcpyAsync(data, host.data(), sizeof(int), cudaMemcpyHostToDevice, stream);
  if (waits) cudaStreamSynchronize(stream);
  host[0] = 2;
  int got = 0;
  cudaStreamSynchronize(stream);
  cudaMemcpy(&got, data, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("last %d\n", got);
  return waits && got != 1 ? 1 : 0;
}

/// The host overwrites a pinned buffer that a copy may still read.
int pinned(bool waits) {
  constexpr int kN = 1 << 12;
  float *device = floats(kN), *host = nullptr, last = 0;
  cudaMallocHost(&host, kN * sizeof(float));
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  for (int i = 0; i < kN; ++i) host[i] = 1;
  cudaMemcpyAsync(device, host, kN * sizeof(float), cudaMemcpyHostToDevice, stream);
  if (waits) cudaStreamSynchronize(stream);
  for (int i = 0; i < kN; ++i) host[i] = 2;
  cudaStreamSynchronize(stream);
  cudaMemcpy(&last, device + kN - 1, sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("last %g\n", last);
  return last == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const fault = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* name) { return std::strcmp(fault, name) == 0; };
  if (is("streams")) return streams(false);
  if (is("streams_right")) return streams(true);
  if (is("pageable")) return pageable(false);
  if (is("pageable_right")) return pageable(true);
  if (is("pinned")) return pinned(false);
  if (is("pinned_right")) return pinned(true);

  float* const data = floats(256);
  int* const flag = reinterpret_cast<int*>(floats(1));
  if (is("global_beyond")) write_at<<<1, 1>>>(data, 256);
  if (is("global_before")) write_at<<<1, 1>>>(data, -1);
  if (is("global_right")) write_at<<<1, 1>>>(data, 255);
  if (is("null")) write_at<<<1, 1>>>(nullptr, 0);
  if (is("refused") || is("refused_right")) {
    write_at<<<1, 1025>>>(data, 0);
    return is("refused_right") && cudaGetLastError() != cudaErrorInvalidConfiguration ? 1 : 0;
  }
  if (is("freed")) {
    cudaFree(data);
    write_at<<<1, 1>>>(data, 3);
  }
  if (is("host_memory")) {
    static float host[4];
    write_at<<<1, 1>>>(host, 0);
  }
  if (is("misaligned")) read_misaligned<<<1, 1>>>(reinterpret_cast<const char*>(data), data);
  if (is("shared_beyond")) shared_beyond<<<1, 1, 64>>>(data, 16);
  if (is("shared_right")) shared_beyond<<<1, 1, 64>>>(data, 15);
  if (is("divergent_barrier")) divergent_barrier<<<1, 64>>>(flag);
  if (is("missing_arrival")) missing_arrival<<<1, 32>>>(flag);
  if (is("constant_written") || is("constant_right")) constant_by_pointer<<<1, 1>>>(flag, is("constant_written"));
  if (is("grid_barrier_skipped") || is("grid_barrier_right")) {
    bool all = is("grid_barrier_right");
    int* counts = reinterpret_cast<int*>(data);
    void* arguments[] = {&counts, &all};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_barrier), dim3(4), dim3(64), arguments);
  }
  if (is("lock_taken_twice") || is("lock_right")) lock_taken_twice<<<4, 1>>>(flag, is("lock_right"));
  if (is("streams_meet_right")) {
    // A kernel waits for other streams: a copy and a kernel.
    int *pinned_one = nullptr, *flags = reinterpret_cast<int*>(data);
    cudaMallocHost(&pinned_one, sizeof(int));
    *pinned_one = 1;
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    wait_for_host<<<2, 32, 0, streams[0]>>>(flags, flag);
    wait_for_host<<<2, 32, 0, streams[0]>>>(flags + 1, flag);
    write_at<<<1, 1, 0, streams[1]>>>(data, 0);
    cudaMemcpyAsync(flags + 1, pinned_one, sizeof(int), cudaMemcpyHostToDevice, streams[1]);
  }
  if (is("queue") || is("queue_right")) {
    // Work of a stream waits, for a limited time, for another stream's work, without an event between them.
    struct Meeting {
      std::atomic<bool> came{false};
      bool met = false;
      std::chrono::seconds patience;
    } meeting;
    meeting.patience = std::chrono::seconds(is("queue_right") ? 120 : 1);
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const auto wait = [](void* data) {
      auto& m = *static_cast<Meeting*>(data);
      const auto end = std::chrono::steady_clock::now() + m.patience;
      while (!m.came && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      m.met = m.came;
    };
    cudaLaunchHostFunc(streams[0], wait, &meeting);
    cudaLaunchHostFunc(streams[1], [](void* data) { static_cast<Meeting*>(data)->came = true; }, &meeting);
    cudaDeviceSynchronize();
    std::printf("%s\n", meeting.met ? "side by side" : "one after the other");
  }
  if (is("wait_right")) {
    // Longer than the detection of a standstill takes.
    int* from_host = nullptr;
    cudaMallocHost(&from_host, sizeof(int));
    *from_host = 0;
    wait_for_host<<<2, 32>>>(from_host, flag);
    std::this_thread::sleep_for(std::chrono::seconds(4));
    *static_cast<volatile int*>(from_host) = 1;
    cudaMemset(flag, 0, sizeof(int));
    cudaMemset(flag, 1, 1);
    one_after_the_other<<<16, 32>>>(flag);
  }
  if (is("trap")) stop<<<1, 1>>>();
  if (is("assertion")) assertion<<<1, 1>>>();
  if (is("too_many_threads")) stop<<<1, 2048>>>();
  if (is("too_much_shared")) stop<<<1, 1, 100 << 10>>>();
  if (is("copy_without_wait") || is("copy_right")) {
    float* const to = floats(256);
    copy_without_wait<<<1, 32>>>(data, to, is("copy_right"));
    float host[128];
    if (cudaMemcpy(host, to, sizeof(host), cudaMemcpyDeviceToHost) == cudaSuccess)
      for (const float value : host)
        if (value != 0) {
          std::printf("read %g before the wait\n", value);
          return 1;
        }
  }
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return report(launched);
  const cudaError_t first = cudaDeviceSynchronize();
  if (first != cudaSuccess && cudaMemset(data, 0, 4) != first) std::printf("not sticky\n");
  return report(first);
}
