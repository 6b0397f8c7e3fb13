// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of siboehm's SGEMM_CUDA (its src/ is an include folder) at one size. Compares with a product in f64,
// instead of its own main, which wants cuBLAS and sizes up to 4096. Arguments: SIZE FIRST LAST [unchecked | timed
// [LOAD]]. Unchecked: each kernel runs on zeros and nothing is computed for comparison, for weft-emulate --time at full
// size. Prints `ok KERNEL seconds GFLOP/s`. Timed: on a GPU, see timed.h; its kernel 0, cuBLAS, only so.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runner.cu"  // run_kernel

#include "timed.h"

namespace {

int time_all(int n, int first, int last, double load) {
  const uint64_t count = static_cast<uint64_t>(n) * static_cast<uint64_t>(n), rows = static_cast<uint64_t>(n);
  float* const a = timed::random<float>(count, 1, timed::Normal());
  float* const b = timed::random<float>(count, 2, timed::Normal());
  float* const before = timed::random<float>(count, 3, timed::Normal());
  float* const c = timed::random<float>(count, 3, timed::Normal());
  const cublasHandle_t handle = first == 0 ? timed::cublas() : nullptr;
  for (int kernel = first; kernel <= last; ++kernel) {
    timed::check(cudaMemcpy(c, before, count * sizeof(float), cudaMemcpyDeviceToDevice), "cudaMemcpy");
    timed::report(
        "sgemm_" + std::to_string(kernel) + "_" + std::to_string(n), 2e-12 * n * n * n, "TFLOP/s", load,
        [&] { run_kernel(kernel, n, n, n, 0.5f, a, b, 0.5f, c, handle); },
        [&] {
          return timed::count_wrong<float>(n, 0.5f, {a, rows, 1}, {b, rows, 1}, 0.5f, {before, rows, 1}, {c, rows, 1},
                                           0, 2e-6f * static_cast<float>(n));
        });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 256, first = argc > 2 ? std::atoi(argv[2]) : 1;
  const int last = argc > 3 ? std::atoi(argv[3]) : 12;
  const bool checks = argc <= 4;
  if (!checks && !std::strcmp(argv[4], "timed")) return time_all(n, first, last, argc > 5 ? std::atof(argv[5]) : 0);
  const size_t count = static_cast<size_t>(n) * static_cast<size_t>(n), bytes = count * sizeof(float);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<float> a(count), b(count), c(count), got(count);
  std::vector<double> expected(count);
  if (checks) {
    for (std::vector<float>* m : {&a, &b, &c})
      for (float& x : *m) x = numbers(random);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j)
          expected[static_cast<size_t>(i * n + j)] +=
              static_cast<double>(a[static_cast<size_t>(i * n + k)]) * b[static_cast<size_t>(k * n + j)];
  }
  float *da, *db, *dc;
  cudaMalloc(&da, bytes);
  cudaMalloc(&db, bytes);
  cudaMalloc(&dc, bytes);
  cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
  int failed = 0;
  for (int kernel = first; kernel <= last; ++kernel) {
    cudaMemcpy(dc, c.data(), bytes, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    const auto begin = std::chrono::steady_clock::now();
    run_kernel(kernel, n, n, n, 0.5f, da, db, 3.0f, dc, nullptr);
    const cudaError_t status = cudaDeviceSynchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cudaMemcpy(got.data(), dc, bytes, cudaMemcpyDeviceToHost);
    double worst = status == cudaSuccess ? 0 : 1e30;
    for (size_t i = 0; i < count && checks; ++i) {
      const double error = std::fabs(got[i] - (0.5 * expected[i] + 3.0 * c[i]));
      worst = error <= worst ? worst : error;  // NaN counts
    }
    const bool passed = worst < 1e-6 * n + 1e-5;
    std::printf("%s %d %.3f s %.2f GFLOP/s, largest error %.1e\n", passed ? "ok" : "FAILED", kernel, seconds,
                2.0 * n * n * n / seconds * 1e-9, worst);
    failed += passed ? 0 : 1;
  }
  return failed ? 1 : 0;
}
