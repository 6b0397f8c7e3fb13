// SPDX-License-Identifier: Apache-2.0
// Times others' kernels on a real GPU: what the argument `timed` of the runners beside this file does. Each kernel
// computes once on random numbers and is compared with a plain product, then runs three times, then up to 20 times
// between events. Prints lines of name, value, unit, with tabs: the median's rate, how many elements were wrong, and
// the clock of the SMs under the same load. A kernel that does not end in ten seconds ends the program.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Calls cuBLAS, kernel 0 of both ladders, where the system has it: the runners are built without it. The types of
/// `arguments` are the declared types.
template <class... Arguments>
cublasStatus_t call_cublas(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcublas.so.13", RTLD_NOW);
  void* const function = library ? dlsym(library, name) : nullptr;
  return function ? reinterpret_cast<cublasStatus_t (*)(Arguments...)>(function)(arguments...)
                  : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return call_cublas("cublasGemmEx", handle, ta, tb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c,
                     ldc, compute, algorithm);
}

namespace timed {

inline cublasHandle_t cublas() {
  cublasHandle_t handle = nullptr;
  if (call_cublas("cublasCreate_v2", &handle) == CUBLAS_STATUS_SUCCESS) return handle;
  std::fprintf(stderr, "no libcublas.so.13, or it does not start\n");
  std::exit(1);
}

inline void check(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(status));
  std::exit(1);
}

/// A number in [0, 1) for each index (splitmix64).
__device__ inline float uniform(uint64_t i, uint64_t seed) {
  uint64_t x = i + (seed << 40) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>((x ^ (x >> 31)) >> 40) * 0x1p-24f;
}

struct Normal {
  __device__ float operator()(uint64_t i, uint64_t seed) const {
    return sqrtf(-2 * logf(1 - uniform(i, 2 * seed))) * cosf(6.2831853f * uniform(i, 2 * seed + 1));
  }
};

struct BelowHundred {
  __device__ int operator()(uint64_t i, uint64_t seed) const { return static_cast<int>(100 * uniform(i, seed)); }
};

template <class T, class Number>
__global__ void fill_kernel(T* x, uint64_t count, uint64_t seed, Number number) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x)
    x[i] = static_cast<T>(number(i, seed));
}

/// `count` numbers on the device.
template <class T, class Number>
T* random(uint64_t count, uint64_t seed, Number number) {
  T* x = nullptr;
  check(cudaMalloc(&x, count * sizeof(T)), "cudaMalloc");
  fill_kernel<<<1024, 256>>>(x, count, seed, number);
  return x;
}

/// Element (i, j) lies at i * row + j * column; one of the two is 1.
template <class T>
struct Matrix {
  const T* data;
  uint64_t row, column;
  __device__ float operator()(uint64_t i, uint64_t j) const { return static_cast<float>(data[i * row + j * column]); }
};

constexpr int kTile = 32;

/// Adds to *wrong how many elements of `got` differ from alpha a b + beta c. Blocks of 32 x 32 threads, one for each
/// tile; n is a multiple of 32.
template <class T>
__global__ void compare_kernel(int n, float alpha, Matrix<T> a, Matrix<T> b, float beta, Matrix<T> c, Matrix<T> got,
                               float relative, float absolute, unsigned* wrong) {
  __shared__ float as[kTile][kTile + 1], bs[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    // Lanes read what lies side by side.
    const int ai = a.column == 1 ? y : x, ak = a.column == 1 ? x : y, bk = b.column == 1 ? y : x,
              bj = b.column == 1 ? x : y;
    as[ai][ak] = a(row + ai, k + ak);
    bs[bk][bj] = b(k + bk, column + bj);
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum += as[y][l] * bs[l][x];
    __syncthreads();
  }
  const float expected = alpha * sum + (beta == 0 ? 0 : beta * c(row + y, column + x));
  if (!(fabsf(got(row + y, column + x) - expected) <= relative * fabsf(expected) + absolute)) atomicAdd(wrong, 1u);
}

template <class T>
unsigned count_wrong(int n, float alpha, Matrix<T> a, Matrix<T> b, float beta, Matrix<T> c, Matrix<T> got,
                     float relative, float absolute) {
  unsigned *wrong = nullptr, count = 0;
  check(cudaMalloc(&wrong, sizeof(count)), "cudaMalloc");
  check(cudaMemset(wrong, 0, sizeof(count)), "cudaMemset");
  const auto tiles = static_cast<unsigned>(n / kTile);
  compare_kernel<<<dim3(tiles, tiles), dim3(kTile, kTile)>>>(n, alpha, a, b, beta, c, got, relative, absolute, wrong);
  check(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost), "the comparison");
  check(cudaFree(wrong), "cudaFree");
  return count;
}

__device__ inline uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

/// Cycles and nanoseconds of `span` nanoseconds on an SM, by a thread that mostly sleeps.
__global__ void clock_kernel(uint64_t span, uint64_t* out) {
  const uint64_t begin = nanoseconds();
  const auto cycles = static_cast<uint64_t>(clock64());
  uint64_t end = begin;
  for (; end - begin < span; end = nanoseconds()) __nanosleep(1000);
  out[0] = static_cast<uint64_t>(clock64()) - cycles;
  out[1] = end - begin;
}

/// Times `launch`, whose one call does `amount` of `unit` seconds. `wrong` looks at what the first call has computed.
/// `load`: seconds of uncounted calls first, which show a hot GPU's clock.
template <class Launch, class Wrong>
void report(const std::string& name, double amount, const char* unit, double load, Launch launch, Wrong wrong) {
  alarm(10);
  launch();
  check(cudaGetLastError(), name);
  check(cudaDeviceSynchronize(), name);
  const unsigned long long elements = wrong();
  constexpr int kWarm = 3, kMost = 20;
  std::vector<cudaEvent_t> events(kMost + 1);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
  uint64_t *clock = nullptr, ticks[2];
  check(cudaMalloc(&clock, sizeof(ticks)), "cudaMalloc");
  float ms = 0;
  // One after the other without a pause, between events: the gaps that follow a launch count, as they do in a program.
  const auto run = [&](int count) {
    check(cudaEventRecord(events[0]), name);
    for (int k = 0; k < count; ++k) {
      launch();
      check(cudaEventRecord(events[static_cast<size_t>(k) + 1]), name);
    }
  };
  run(kWarm);
  check(cudaEventSynchronize(events[kWarm]), name);
  check(cudaEventElapsedTime(&ms, events[kWarm - 1], events[kWarm]), name);
  const int repeats = std::clamp(static_cast<int>(500 / ms), 5, kMost);
  for (double waited = 0; waited < load * 1e3; waited += ms) launch();
  run(repeats);
  // As many again, with a thread beside them that looks at the clock; it may find room only when their first blocks
  // have ended.
  cudaStream_t beside = nullptr;
  check(cudaStreamCreateWithPriority(&beside, cudaStreamNonBlocking, -5), name);
  check(cudaStreamWaitEvent(beside, events[static_cast<size_t>(repeats)]), name);
  clock_kernel<<<1, 1, 0, beside>>>(static_cast<uint64_t>(0.7e6 * ms * repeats), clock);
  for (int k = 0; k < repeats; ++k) launch();
  check(cudaDeviceSynchronize(), name);
  check(cudaMemcpy(ticks, clock, sizeof(ticks), cudaMemcpyDeviceToHost), name);
  check(cudaStreamDestroy(beside), name);
  std::vector<double> seconds;
  for (size_t k = 0; k < static_cast<size_t>(repeats); ++k) {
    check(cudaEventElapsedTime(&ms, events[k], events[k + 1]), name);
    seconds.push_back(ms * 1e-3);
  }
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  const double median = seconds.size() % 2 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  const std::string suffix = load > 0 ? "_loaded" : "";
  std::printf("%s%s\t%.5g\t%s\n", name.c_str(), suffix.c_str(), amount / median, unit);
  std::printf("%s%s_clock\t%.4g\tGHz\n", name.c_str(), suffix.c_str(),
              static_cast<double>(ticks[0]) / static_cast<double>(ticks[1]));
  std::printf("%s%s_wrong\t%llu\telements\n", name.c_str(), suffix.c_str(), elements);
  std::fflush(stdout);
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  cudaFree(clock);
  alarm(0);
}

}  // namespace timed
