// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (const int batches : measure ? std::vector<int>{4} : std::vector<int>{1, 2, 5, 8}) {
    constexpr int n = 300;
    const auto numbers = check.numbers(batches * n);
    std::vector<float> expected(n);
    for (size_t i = 0; i < numbers.size(); ++i) expected[i % n] += numbers[i];
    Pinned buffers(2 * n);
    const Device<float> device(n), sum(n);
    sums([&](int b, float* to) { std::memcpy(to, &numbers[b * n], n * sizeof(float)); }, batches, buffers, device, sum, n, stream);
    check.equal(std::to_string(batches) + " batches", sum, expected);
  }
}
