// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  cudaStream_t stream, side;
  cudaEvent_t done;
  for (cudaStream_t* const s : {&stream, &side}) cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  for (const int n : measure ? std::vector<int>{1000} : std::vector<int>{1, 32, 1000}) {
    const auto numbers = check.numbers(n);
    float sum = 0;
    for (const float value : numbers) sum += value;
    std::vector<float> expected(n);
    for (int i = 0; i < n; ++i) expected[i] = static_cast<float>(n) * numbers[i] - sum;
    const Device<float> x(numbers), y(n);
    shift(x, y, n, stream, side, done);
    float* next;  // the caller's next allocation, which it fills
    cudaMallocAsync(&next, sizeof(float), stream);
    cudaMemsetAsync(next, 0xff, sizeof(float), stream);
    cudaFreeAsync(next, stream);
    cudaStreamWaitEvent(stream, done);
    Pinned result(n);
    cudaMemcpyAsync(result, y, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    check.equal("n = " + std::to_string(n), result.values(), expected);
    cudaDeviceSynchronize();
  }
}
