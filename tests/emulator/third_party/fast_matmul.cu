// SPDX-License-Identifier: Apache-2.0
// Runs the H100 kernels of pranjalssh's fast.cu (the folder is an include folder) at a size. Compares with products in
// f64, instead of its own main, which wants cuBLAS and 8192. Arguments: SIZE FIRST LAST [unchecked | timed [LOAD]].
// Unchecked: each kernel runs on zeros and nothing is computed for comparison, for weft-emulate --time at full size;
// kernel 1, whose factors lie otherwise, only so. Prints `ok KERNEL seconds GFLOP/s`. Timed: on a GPU, see timed.h; 0
// is cuBLAS.
#define NDEBUG  // as its Makefile has it: kernels 11 and 12 assert what does not compile
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/barrier>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "timed.h"

typedef __nv_bfloat16 bf16;
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define cudaCheck(call)                                           \
  do {                                                            \
    if ((call) != cudaSuccess) std::printf("%s failed\n", #call); \
  } while (false)

#include "examples/matmul/matmul_1.cuh"
#include "examples/matmul/matmul_2.cuh"
#include "examples/matmul/matmul_3.cuh"
#include "examples/matmul/matmul_4.cuh"
#include "examples/matmul/matmul_5.cuh"
#include "examples/matmul/matmul_6.cuh"
#include "examples/matmul/matmul_7.cuh"
#include "examples/matmul/matmul_8.cuh"
#include "examples/matmul/matmul_9.cuh"
#include "examples/matmul/matmul_10.cuh"
#include "examples/matmul/matmul_11.cuh"
#include "examples/matmul/matmul_12.cuh"

namespace {

void run(int kernel, int n, bf16* a, bf16* b, bf16* c) {
  int* const counters = nullptr;
  switch (kernel) {
    case 1:
      return runKernel1(n, n, n, a, b, c);
    case 2:
      return runKernel2(n, n, n, a, b, c);
    case 3:
      return runKernel3(n, n, n, a, b, c, counters);
    case 4:
      return runKernel4(n, n, n, a, b, c, counters);
    case 5:
      return runKernel5(n, n, n, a, b, c, counters);
    case 6:
      return runKernel6(n, n, n, a, b, c, counters);
    case 7:
      return runKernel7(n, n, n, a, b, c, counters);
    case 8:
      return runKernel8(n, n, n, a, b, c, counters);
    case 9:
      return runKernel9(n, n, n, a, b, c, counters);
    case 10:
      return runKernel10(n, n, n, a, b, c, counters);
    case 11:
      return runKernel11(n, n, n, a, b, c, counters);
    case 12:
      return runKernel12(n, n, n, a, b, c, counters);
  }
}

int time_all(int n, int first, int last, double load) {
  const uint64_t count = static_cast<uint64_t>(n) * static_cast<uint64_t>(n), rows = static_cast<uint64_t>(n);
  bf16* const a = timed::random<bf16>(count, 1, timed::Normal());
  bf16* const b = timed::random<bf16>(count, 2, timed::Normal());
  bf16* const c = timed::random<bf16>(count, 3, timed::Normal());
  const cublasHandle_t handle = first == 0 ? timed::cublas() : nullptr;
  const float one = 1, zero = 0;
  for (int kernel = first; kernel <= last; ++kernel) {
    timed::check(cudaMemset(c, 0xff, count * sizeof(bf16)), "cudaMemset");
    const auto launch = [&] {
      if (kernel > 0)
        run(kernel, n, a, b, c);
      else
        cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_16BF, n, b, CUDA_R_16BF, n, &zero, c,
                     CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    };
    // Kernel 1's matrices lie row by row.
    const auto wrong = [&] {
      return kernel == 1
                 ? timed::count_wrong<bf16>(n, 1, {a, rows, 1}, {b, rows, 1}, 0, {}, {c, rows, 1}, 0.01f, 0.02f)
                 : timed::count_wrong<bf16>(n, 1, {a, rows, 1}, {b, 1, rows}, 0, {}, {c, 1, rows}, 0.01f, 0.02f);
    };
    timed::report("fast_" + std::to_string(kernel) + "_" + std::to_string(n), 2e-12 * n * n * n, "TFLOP/s", load,
                  launch, wrong);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 512, first = argc > 2 ? std::atoi(argv[2]) : 2;
  const int last = argc > 3 ? std::atoi(argv[3]) : 12;
  const bool checks = argc <= 4;
  if (!checks && !std::strcmp(argv[4], "timed")) return time_all(n, first, last, argc > 5 ? std::atof(argv[5]) : 0);
  const size_t count = static_cast<size_t>(n) * static_cast<size_t>(n), bytes = count * sizeof(bf16);
  std::mt19937 random(1);
  std::normal_distribution<float> numbers(0, 1);
  std::vector<bf16> a(count), b(count), got(count);
  for (std::vector<bf16>* m : {&a, &b})
    if (checks)
      for (bf16& x : *m) x = __float2bfloat16(numbers(random));
  // Rows of a by columns of b; both lie with depth innermost, and c column by column.
  std::vector<float> fa(checks ? count : 0), fb(fa.size());
  for (size_t i = 0; i < fa.size(); ++i) fa[i] = __bfloat162float(a[i]), fb[i] = __bfloat162float(b[i]);
  std::vector<float> expected(fa.size());
  for (int j = 0; j < n && checks; ++j)
    for (int i = 0; i < n; ++i) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += fa[static_cast<size_t>(i * n + k)] * fb[static_cast<size_t>(j * n + k)];
      expected[static_cast<size_t>(j * n + i)] = sum;
    }
  bf16 *da, *db, *dc;
  cudaMalloc(&da, bytes);
  cudaMalloc(&db, bytes);
  cudaMalloc(&dc, bytes);
  cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
  int failed = 0;
  for (int kernel = first; kernel <= last; ++kernel) {
    cudaMemset(dc, 0xff, bytes);
    cudaDeviceSynchronize();
    const auto begin = std::chrono::steady_clock::now();
    run(kernel, n, da, db, dc);
    const cudaError_t status = cudaDeviceSynchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cudaMemcpy(got.data(), dc, bytes, cudaMemcpyDeviceToHost);
    size_t wrong = status == cudaSuccess ? 0 : count;
    for (size_t i = 0; i < count && checks && status == cudaSuccess; ++i) {
      const float x = __bfloat162float(got[i]), e = expected[i];
      wrong += std::fabs(x - e) <= 0.01f * std::fabs(e) + 0.02f ? 0 : 1;
    }
    std::printf("%s %d %.3f s %.2f GFLOP/s, %zu of %zu wrong\n", wrong ? "FAILED" : "ok", kernel, seconds,
                2.0 * n * n * n / seconds * 1e-9, wrong, count);
    failed += wrong ? 1 : 0;
  }
  return failed ? 1 : 0;
}
