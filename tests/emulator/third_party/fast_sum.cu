// SPDX-License-Identifier: Apache-2.0
// Runs the sums of pranjalssh's fast.cu (the folder is an include folder) and CUB's on COUNT numbers, once each,
// instead of its own main, which wants 2^30 and a hundred runs. Arguments: COUNT FIRST LAST [unchecked]; 5 is CUB.
// Unchecked: nothing is compared, for weft-emulate --time at full size. Prints `ok KERNEL` or `WRONG KERNEL`.
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#define main main_of_fast_cu
#include "sum.cu"
#undef main

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1 << 22, first = argc > 2 ? std::atoi(argv[2]) : 1;
  const int last = argc > 3 ? std::atoi(argv[3]) : NUM_KERNELS + 1;
  const bool checks = argc <= 4;
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
