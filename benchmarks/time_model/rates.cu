// SPDX-License-Identifier: Apache-2.0
// Measures on a GPU what the model of time takes from sources (emulator/machine/time_model.cpp). Prints lines of name,
// value, unit, with tabs. For Hopper:
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a rates.cu -o rates && ./rates [shared | memory | launches
//   | tensor | hot]
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

/// A block's measured span.
struct Span {
  uint64_t cycles, nanoseconds;
  double ghz() const { return static_cast<double>(cycles) / static_cast<double>(nanoseconds); }
};

class Watch {
 public:
  __device__ Watch() {
    __syncthreads();
    cycles_ = clock64(), nanoseconds_ = now();
  }
  __device__ void stop(Span* spans) const {
    __syncthreads();
    if (threadIdx.x == 0) spans[blockIdx.x] = {static_cast<uint64_t>(clock64() - cycles_), now() - nanoseconds_};
  }

 private:
  static __device__ uint64_t now() {
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
  }
  long long cycles_;
  uint64_t nanoseconds_;
};

int processors() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "the number of SMs");
  return count;
}

/// The median block of the second launch: the first one loads the code.
template <class Launch>
Span measure(int blocks, const char* what, Launch launch) {
  Span* spans = nullptr;
  const auto count = static_cast<size_t>(blocks);
  check(cudaMalloc(&spans, sizeof(Span) * count), "cudaMalloc");
  for (int k = 0; k < 2; ++k) launch(blocks, spans);
  check(cudaGetLastError(), what);
  std::vector<Span> all(count);
  check(cudaMemcpy(all.data(), spans, sizeof(Span) * count, cudaMemcpyDeviceToHost), what);
  check(cudaFree(spans), "cudaFree");
  std::nth_element(all.begin(), all.begin() + blocks / 2, all.end(),
                   [](const Span& a, const Span& b) { return a.cycles < b.cycles; });
  return all[count / 2];
}

constexpr int kTurns = 128, kEach = 16;

/// Loads of kBytes a lane from shared memory, `sharing` neighbouring lanes of each address.
template <int kBytes>
__global__ void __launch_bounds__(1024) shared_kernel(int sharing, int apart, Span* spans) {
  __shared__ __align__(16) char memory[32 * 1024];
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + threadIdx.x % 32 / sharing * apart;
  const Watch watch;
  for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      [[maybe_unused]] uint32_t a, b, c, d;
      if constexpr (kBytes == 4) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(address));
      if constexpr (kBytes == 8) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(address));
      if constexpr (kBytes == 16)
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address));
    }
  watch.stop(spans);
}

template <int kBytes>
void shared_loads() {
  for (const int sharing : {1, 2, 4, 8, 16, 32}) {
    const Span span = measure(processors(), "shared memory", [&](int blocks, Span* spans) {
      shared_kernel<kBytes><<<blocks, 1024>>>(sharing, kBytes, spans);
    });
    std::printf("shared_%d_bytes_%d_lanes_an_address\t%.3f\tcycles\n", kBytes, sharing,
                static_cast<double>(span.cycles) / (32 * kTurns * kEach));
  }
}

/// Reads `count` vectors of 16 bytes `passes` times, all blocks together, past L1.
__global__ void __launch_bounds__(1024) read_kernel(const uint4* data, uint64_t count, int passes, Span* spans) {
  const uint64_t threads = uint64_t{gridDim.x} * blockDim.x, first = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const Watch watch;
  for (int pass = 0; pass < passes; ++pass)
#pragma unroll 8
    for (uint64_t i = first; i < count; i += threads) {
      [[maybe_unused]] uint32_t a, b, c, d;
      asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(data + i));
    }
  watch.stop(spans);
}

/// Each load's address is the previous load's result, across launches too.
template <bool kL1>
__global__ void chase_kernel(const uint32_t* next, int steps, uint32_t* out, Span* spans) {
  uint32_t at = *out;
  for (int warm = kL1 ? 0 : 1; warm < 2; ++warm) {
    const Watch watch;
    for (int k = 0; k < steps; ++k) {
      if constexpr (kL1) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(next + at));
      if constexpr (!kL1) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(next + at));
    }
    watch.stop(spans);
  }
  *out = at;
}

__global__ void chain_kernel(uint32_t* next, uint64_t count, uint64_t stride) {
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x)
    next[i] = static_cast<uint32_t>((i + stride) % count);
}

__global__ void random_kernel(__nv_bfloat16* x, uint64_t count) {
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x) {
    uint64_t h = (i + 1) * 0x9e3779b97f4a7c15;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
    const float u = static_cast<float>(h >> 40) * 0x1p-24f, v = static_cast<float>(h & 0xffffff) * 0x1p-24f;
    x[i] = __float2bfloat16(sqrtf(-2 * logf(1 - u)) * cosf(6.2831853f * v));
  }
}

/// mma.sync of bf16, eight warps an SM with four independent sums each.
__global__ void mma_kernel(const uint32_t* data, int turns, float* out, Span* spans) {
  uint32_t a[4], b[2];
  for (int k = 0; k < 4; ++k) a[k] = data[k * 256 + threadIdx.x];
  for (int k = 0; k < 2; ++k) b[k] = data[(4 + k) * 256 + threadIdx.x];
  float d[4][4] = {};
  const Watch watch;
  for (int turn = 0; turn < turns; ++turn)
#pragma unroll
    for (auto& sums : d)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
          "%2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  watch.stop(spans);
  for (auto& sums : d) out[threadIdx.x] += sums[0] + sums[1] + sums[2] + sums[3];
}

// clang-format off
#define SUMS_8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
// clang-format on

/// wgmma of 64 x 256 x 16, bf16 from shared memory, two warpgroups an SM: rows of their own, columns in common, four
/// depths of a line of 128 bytes.
__global__ void __launch_bounds__(256) wgmma_kernel(const uint4* data, int turns, float* out, Span* spans) {
  extern __shared__ __align__(1024) uint4 tiles[];  // 2 x 64 and 256 lines of 128 bytes
  for (int i = static_cast<int>(threadIdx.x); i < 384 * 8; i += 256) tiles[i] = data[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const auto describe = [](uint32_t address) {
    return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
  };
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(tiles));
  const uint64_t a = describe(base + threadIdx.x / 128 * 64 * 128), b = describe(base + 128 * 128);
  float d[128] = {};
  const Watch watch;
  for (int turn = 0; turn < turns; ++turn) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k)
      asm volatile(
          "{wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
          "%12, %13, %14, %15, %16, %17, %18, %19, "
          "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
          "%41, %42, %43, %44, %45, %46, %47, %48, "
          "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
          "%70, %71, %72, %73, %74, %75, %76, %77, "
          "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, "
          "%99, %100, %101, %102, %103, %104, %105, "
          "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "
          "%124, %125, %126, %127}, %128, %129, "
          "1, 1, 1, 0, 0;}"
          : SUMS_32(0), SUMS_32(32), SUMS_32(64), SUMS_32(96)
          : "l"(a + 2 * k), "l"(b + 2 * k));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  watch.stop(spans);
  float sum = 0;
  for (const float one : d) sum += one;
  out[threadIdx.x] = sum;
}

__global__ void empty_kernel() {}

void memory() {
  constexpr uint64_t kMost = 4ull << 30;
  uint4* data = nullptr;
  uint32_t* out = nullptr;
  check(cudaMalloc(&data, kMost), "cudaMalloc");
  check(cudaMalloc(&out, 4), "cudaMalloc");
  check(cudaMemset(data, 1, kMost), "cudaMemset");
  check(cudaMemset(out, 0, 4), "cudaMemset");
  for (const uint64_t mib : {8, 16, 24, 32, 40, 48, 56, 4096}) {
    const int passes = static_cast<int>(std::max<uint64_t>(1, 2048 / mib));
    const double bytes = static_cast<double>(mib << 20) * passes;
    const Span span = measure(2 * processors(), "reads", [&](int blocks, Span* spans) {
      read_kernel<<<blocks, 1024>>>(data, mib << 16, passes, spans);
    });
    std::printf("read_%d_MiB\t%.1f\tbytes a cycle\n", static_cast<int>(mib), bytes / static_cast<double>(span.cycles));
    std::printf("read_%d_MiB_rate\t%.1f\tGB/s\n", static_cast<int>(mib), bytes / static_cast<double>(span.nanoseconds));
  }
  auto* const next = reinterpret_cast<uint32_t*>(data);
  const auto chase = [&](const char* name, auto kernel, uint64_t bytes, uint64_t stride, int steps) {
    chain_kernel<<<1024, 256>>>(next, bytes / 4, stride / 4);
    const Span span = measure(1, name, [&](int, Span* spans) { kernel<<<1, 1>>>(next, steps, out, spans); });
    std::printf("latency_%s\t%.1f\tcycles\n", name, static_cast<double>(span.cycles) / steps);
  };
  chase("l1", chase_kernel<true>, 16 << 10, 128, 4096);
  chase("l2", chase_kernel<false>, 2 << 20, 4224, 8192);
  check(cudaMemset(out, 0, 4), "cudaMemset");
  chase("dram", chase_kernel<false>, 1ull << 30, (128 << 10) + 128, 4000);  // 8000 lines, none twice
  check(cudaFree(data), "cudaFree");
}

void tensor(double load, const char* suffix) {
  const int sms = processors();
  __nv_bfloat16* data = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&data, 1 << 20), "cudaMalloc");
  check(cudaMalloc(&out, 1 << 10), "cudaMalloc");
  random_kernel<<<64, 256>>>(data, 1 << 19);
  constexpr int kShared = 384 * 128;
  check(cudaFuncSetAttribute(wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared), "shared memory");
  const auto report = [&](const char* name, const Span& span, double flop) {
    std::printf("%s%s\t%.1f\tFLOP a cycle and SM\n", name, suffix, flop / static_cast<double>(span.cycles));
    std::printf("%s%s_clock\t%.4f\tGHz\n", name, suffix, span.ghz());
  };
  const int turns = load > 0 ? static_cast<int>(load * 1e9 / 600) : 4000;
  report("wgmma",
         measure(sms, "wgmma",
                 [&](int blocks, Span* spans) {
                   wgmma_kernel<<<blocks, 256, kShared>>>(reinterpret_cast<uint4*>(data), turns, out, spans);
                 }),
         turns * 8.0 * 2 * 64 * 256 * 16);
  report("mma",
         measure(sms, "mma",
                 [&](int blocks, Span* spans) {
                   mma_kernel<<<blocks, 256>>>(reinterpret_cast<uint32_t*>(data), turns * 20, out, spans);
                 }),
         turns * 20.0 * 4 * 8 * 2 * 16 * 8 * 16);
  check(cudaFree(data), "cudaFree");
  check(cudaFree(out), "cudaFree");
}

void launches() {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  constexpr int kLaunches = 2000;
  float ms = 0;
  for (int pass = 0; pass < 2; ++pass) {
    check(cudaEventRecord(begin), "an event");
    for (int k = 0; k < kLaunches; ++k) empty_kernel<<<1, 32>>>();
    check(cudaEventRecord(end), "an event");
    check(cudaEventSynchronize(end), "an event");
    check(cudaEventElapsedTime(&ms, begin, end), "an event");
  }
  std::printf("launch\t%.3f\tus\n", ms * 1e3 / kLaunches);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto run = [&](const char* name, auto part) {
    if (only.empty() || only == name) part();
  };
  run("shared", [] { shared_loads<4>(), shared_loads<8>(), shared_loads<16>(); });
  run("memory", memory);
  run("launches", launches);
  run("tensor", [] { tensor(0, ""); });
  run("hot", [] { tensor(0.2, "_hot"); });
}
