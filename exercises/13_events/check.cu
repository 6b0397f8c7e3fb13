// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  cudaStream_t copies, work;
  cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  for (const int n : measure ? std::vector<int>{4096} : std::vector<int>{1, 1000, 4096}) {
    const auto numbers = check.numbers(n);
    std::vector<float> expected(numbers);
    for (float& value : expected) value *= 2;
    Pinned in(n), out(n);
    in.fill(numbers);
    const Device<float> device(n);
    twice(in, out, device, n, copies, work);
    check.equal("n = " + std::to_string(n), out.values(), expected);
    cudaDeviceSynchronize();
  }
}
