// SPDX-License-Identifier: Apache-2.0
// Runs the sums of pranjalssh's fast.cu (the folder is an include folder) and CUB's on COUNT numbers, once each. Its
// own main wants 2^30 and a hundred runs. Arguments: COUNT FIRST LAST [unchecked | timed [LOAD]];
// 5 is CUB. Unchecked: nothing is compared, for weft-emulate --time at full size. Prints `ok KERNEL` or `WRONG KERNEL`.
// Timed: on a GPU, see timed.h.
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "timed.h"

#define main main_of_fast_cu
#include "sum.cu"
#undef main

namespace {

__global__ void plain_sum_kernel(const int* in, uint64_t count, int* out) {
  int sum = 0;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x)
    sum += in[i];
  atomicAdd(out, sum);
}

int time_all(int n, int first, int last, double load) {
  int* const in = timed::random<int>(static_cast<uint64_t>(n), 1, timed::BelowHundred());
  int *out = nullptr, expected = 0;
  timed::check(cudaMalloc(&out, sizeof(int)), "cudaMalloc");
  timed::check(cudaMemset(out, 0, sizeof(int)), "cudaMemset");
  plain_sum_kernel<<<1024, 256>>>(in, static_cast<uint64_t>(n), out);
  timed::check(cudaMemcpy(&expected, out, sizeof(int), cudaMemcpyDeviceToHost), "the plain sum");
  size_t bytes = 0;
  void* scratch = nullptr;
  timed::check(cub::DeviceReduce::Sum(scratch, bytes, in, out, n), "CUB");
  timed::check(cudaMalloc(&scratch, bytes), "cudaMalloc");
  for (int kernel = first; kernel <= last; ++kernel) {
    timed::check(cudaMemset(out, 0xff, sizeof(int)), "cudaMemset");
    const auto launch = [&] {
      if (kernel <= NUM_KERNELS)
        kernelDispatch(kernel, in, out, nullptr, n);
      else
        cub::DeviceReduce::Sum(scratch, bytes, in, out, n);
    };
    const auto wrong = [&] {
      int got = 0;
      timed::check(cudaMemcpy(&got, out, sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
      return got == expected ? 0u : 1u;
    };
    timed::report("sum_" + std::to_string(kernel), 4e-9 * n, "GB/s", load, launch, wrong);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 22, first = argc > 2 ? std::atoi(argv[2]) : 1;
  const int last = argc > 3 ? std::atoi(argv[3]) : NUM_KERNELS + 1;
  const bool checks = argc <= 4;
  if (!checks && !std::strcmp(argv[4], "timed")) return time_all(n, first, last, argc > 5 ? std::atof(argv[5]) : 0);
  const size_t bytes = static_cast<size_t>(n) * sizeof(int);
  std::vector<int> numbers(checks ? static_cast<size_t>(n) : 0);
  srand(42);
  for (int& one : numbers) one = rand() % 100;
  const int expected = std::accumulate(numbers.begin(), numbers.end(), 0);
  int *in = nullptr, *out = nullptr, failed = 0;
  cudaMalloc(&in, bytes);
  cudaMalloc(&out, sizeof(int));
  cudaMemcpy(in, numbers.data(), checks ? bytes : 0, cudaMemcpyHostToDevice);
  for (int kernel = first; kernel <= last; ++kernel) {
    int got = 0;
    cudaMemset(out, 0, sizeof(int));
    if (kernel <= NUM_KERNELS)
      sumKernelCall(kernel, in, out, &got, n, 1);
    else
      sumCubCall(in, out, &got, n, 1);
    const bool right = cudaGetLastError() == cudaSuccess && (got == expected || !checks);
    std::printf("%s %d\n", right ? "ok" : "WRONG", kernel);
    failed += right ? 0 : 1;
  }
  return failed ? 1 : 0;
}
