// SPDX-License-Identifier: Apache-2.0
// Kernels whose counts time.py knows, for weft-emulate --time.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>

/// Each float once: 4 bytes in, 4 out.
__global__ void copies(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

/// Lane l reads the first word of line l: 32 lines for a warp.
__global__ void scattered(const float* in, float* out) {
  const float x = in[threadIdx.x * 32];
  if (x == 1) *out = x;
}

/// Every warp reads the same 4 KiB eight times: it comes from L2 once.
__global__ void rereads(int nothing, const float* in, float* out) {
  float sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < 8; ++turn)
    for (int i = static_cast<int>(threadIdx.x) % 32; i < 1024; i += 32) sum += in[i + turn * nothing];
  if (sum == 1) *out = sum;
}

/// 128 reads of shared memory, lanes `stride` words apart.
__global__ void banks(int stride, float* out) {
  __shared__ float words[1024];
  const volatile float* const at = words + threadIdx.x * static_cast<unsigned>(stride) % 1024;
  float sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < 128; ++turn) sum += *at;
  if (sum == 1) *out = sum;
}

/// Each lane reads 16 bytes of shared memory, `stride` times 16 bytes apart.
__global__ void quarters(unsigned stride, float* out) {
  __shared__ float4 vectors[64];
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(vectors + threadIdx.x * stride % 64))));
  if (v.x + v.y + v.z + v.w == 1) *out = v.x;
}

/// 16 bytes of each lane go to shared memory by cp.async.
__global__ void to_shared(const float4* in) {
  __shared__ float4 vectors[32];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(vectors + threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n cp.async.wait_all;" ::"r"(to), "l"(in + threadIdx.x));
}

/// 4096 dependent FMAs.
__global__ void chain(float factor, float* out) {
  float x = factor;
#pragma unroll 16
  for (int turn = 0; turn < 4096; ++turn) x = x * factor + 1;
  if (x == 1) *out = x;
}

/// A warp does the work, then the other, which waits.
__global__ void relay(float factor, float* out) {
  __shared__ float handed;
  for (unsigned warp = 0; warp < 2; ++warp) {
    if (threadIdx.x / 32 == warp) {
      float x = warp == 0 ? factor : handed;
#pragma unroll 16
      for (int turn = 0; turn < 4096; ++turn) x = x * factor + 1;
      handed = x;
    }
    __syncthreads();
  }
  if (handed == 1) *out = handed;
}

/// A warp multiplies 16 x 16 matrices 8 times.
__global__ void multiplies(const __nv_bfloat16* in, float* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> a;
  fragment<matrix_b, 16, 16, 16, __nv_bfloat16, col_major> b;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0);
  load_matrix_sync(a, in, 16);
  load_matrix_sync(b, in, 16);
  for (int turn = 0; turn < 8; ++turn) mma_sync(sum, a, b, sum);
  store_matrix_sync(out + blockIdx.x * 256, sum, 16, mem_row_major);
}

/// Tiles of 16 x 16 as a matrix product reads them: rows of tiles share lines of `a`, columns of `b`. Blocks at the end of
/// the grid have as much to do as those in its middle.
__global__ void tiles(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][17], right[16][17];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 16 + y, column = static_cast<int>(blockIdx.x) * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

/// A warp's atomic operations on words that are `apart` ints from each other.
enum class Kind { counts, adds, adds_floats, returns };
template <Kind kKind>
__device__ void meet(int* words, int apart, int value) {
  int* const at = words + static_cast<int>(threadIdx.x) % 32 * apart;
  if (kKind == Kind::counts) atomicAdd(at, 1);
  if (kKind == Kind::adds) atomicAdd(at, value);
  if (kKind == Kind::adds_floats) atomicAdd(reinterpret_cast<float*>(at), static_cast<float>(value));
  if (kKind == Kind::returns) words[apart * 32 + 1] = atomicAdd(at, 1);
}
template <Kind kKind>
__global__ void meets_shared(int apart, int* out) {
  __shared__ int words[1026];
  meet<kKind>(words, apart, static_cast<int>(threadIdx.x) + 2);
  if (words[0] == -1) *out = 1;
}
template <Kind kKind>
__global__ void meets_global(int apart, int* out) {
  meet<kKind>(out, apart, static_cast<int>(threadIdx.x) + 2);
}
/// All lanes at an address that ptxas knows to be one: `kReturns`: each wants its number.
template <bool kReturns>
__global__ void gathers(int* out) {
  const int number = atomicAdd(out, 1);
  if (kReturns) out[1 + number % 8] = 0;
}

__global__ void arrives(int* count) { atomicAdd(count, 1); }

/// A conversion four times, as nvcc leaves it.
__global__ void repeats(unsigned short bits, float* out) {
  float sum = 0;
#define ADD_CONVERTED                                              \
  {                                                                \
    float x;                                                       \
    asm volatile("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); \
    sum += x;                                                      \
  }
  ADD_CONVERTED ADD_CONVERTED ADD_CONVERTED ADD_CONVERTED
  if (sum == 1) *out = sum;
}

/// A loop as ptxas gets it, of 16 turns, that adds the floats from shared address `at` on to `sum`.
#define SUM_16(sum, at, pragma)                                                  \
  asm volatile(                                                                  \
      "{.reg .pred p;\n .reg .u32 zero, turn, next;\n .reg .f32 x;\n"            \
      "mov.u32 zero, 0;\n mov.u32 turn, zero;\n mov.u32 next, %1;\n"             \
      "more:\n " pragma                                                          \
      "ld.shared.f32 x, [next];\n add.f32 %0, %0, x;\n add.u32 next, next, 4;\n" \
      "add.u32 turn, turn, 1;\n setp.ne.u32 p, turn, 16;\n @p bra more;}"        \
      : "+f"(sum)                                                                \
      : "r"(at))

/// Every lane sums the same 16 floats of shared memory, which begin `begin` bytes after a multiple of 16. ptxas unrolls
/// such a loop unless PTX says no.
template <bool kUnrolled>
__global__ void joins(int begin, float* out) {
  __shared__ __align__(16) float words[32];
  words[threadIdx.x] = 0;
  __syncthreads();
  float sum = 0;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(words)) + static_cast<unsigned>(begin);
  if (kUnrolled)
    SUM_16(sum, at, "");
  else
    SUM_16(sum, at, ".pragma \"nounroll\";\n ");
  if (sum == 1) *out = sum;
}

int main() {
  constexpr int kTiled = 768;
  float *in, *out;
  constexpr size_t kBytes = size_t{3} * kTiled * kTiled * sizeof(float);
  if (cudaMalloc(&in, kBytes) != cudaSuccess || cudaMalloc(&out, kBytes) != cudaSuccess) return 1;
  cudaMemset(in, 0, kBytes);
  copies<<<256, 256>>>(in, out);
  scattered<<<1, 32>>>(in, out);
  rereads<<<1, 128>>>(0, in, out);
  banks<<<1, 32>>>(1, out);
  banks<<<1, 32>>>(32, out);
  for (const unsigned stride : {0u, 1u, 2u}) quarters<<<1, 32>>>(stride, out);
  to_shared<<<1, 32>>>(reinterpret_cast<const float4*>(in));
  chain<<<1, 32>>>(0.5f, out);
  relay<<<1, 64>>>(0.5f, out);
  multiplies<<<4, 32>>>(reinterpret_cast<const __nv_bfloat16*>(in), out);
  tiles<<<dim3(kTiled / 16, kTiled / 16), dim3(16, 16)>>>(in, in + kTiled * kTiled, out, kTiled);
  joins<true><<<1, 32>>>(0, out);
  joins<true><<<1, 32>>>(8, out);
  joins<false><<<1, 32>>>(0, out);
  repeats<<<1, 32>>>(0, out);
  int* const words = reinterpret_cast<int*>(out);
  for (const int apart : {0, 1}) {
    meets_shared<Kind::counts><<<1, 32>>>(apart, words);
    meets_shared<Kind::adds><<<1, 32>>>(apart, words);
    meets_shared<Kind::adds_floats><<<1, 32>>>(apart, words);
    meets_shared<Kind::returns><<<1, 32>>>(apart, words);
    meets_global<Kind::adds><<<4, 64>>>(apart, words);
    meets_global<Kind::adds_floats><<<4, 64>>>(apart, words);
  }
  gathers<false><<<4, 64>>>(words);
  gathers<true><<<4, 64>>>(words);
  // The second launch equals the first, in other memory; the third does not.
  int *counts[3], arrived[3];
  for (int k = 0; k < 3; ++k) {
    if (cudaMalloc(&counts[k], sizeof(int)) != cudaSuccess) return 1;
    cudaMemset(counts[k], 0, sizeof(int));
    arrives<<<1, k == 2 ? 64 : 32>>>(counts[k]);
    cudaMemcpy(&arrived[k], counts[k], sizeof(int), cudaMemcpyDeviceToHost);
  }
  std::printf("arrived %d %d %d\n", arrived[0], arrived[1], arrived[2]);
  // More memory than is noted page by page.
  constexpr size_t kMany = size_t{16} << 20;
  float *from, *to;
  if (cudaMalloc(&from, kMany * sizeof(float)) != cudaSuccess || cudaMalloc(&to, kMany * sizeof(float)) != cudaSuccess)
    return 1;
  copies<<<kMany / 256, 256>>>(from, to);
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) std::printf("%s\n", cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}
