// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  cudaStream_t stream, side[2];
  for (cudaStream_t* const s : {&stream, &side[0], &side[1]}) cudaStreamCreateWithFlags(s, cudaStreamNonBlocking);
  const auto one = [&](int n, int chunks) {
    const auto numbers = check.numbers(n);
    std::vector<float> expected(numbers);
    for (float& value : expected) value *= 2;
    Pinned in(n), out(n);
    in.fill(numbers);
    const Device<float> device(n);
    cudaMemsetAsync(device, 0xff, n * sizeof(float), stream);  // the caller's own work
    const std::string name = "n = " + std::to_string(n) + ", " + std::to_string(chunks) + " chunks";
    if (measure) {
      cudaDeviceSynchronize();
      check.chain(name, stream, [&] { twice(in, out, device, n, chunks, stream, side); });
    }
    twice(in, out, device, n, chunks, stream, side);
    cudaStreamSynchronize(stream);
    check.equal(name, out.values(), expected);
    cudaDeviceSynchronize();
  };
  if (measure) return one(4096, 4);
  for (const int chunks : {1, 2, 3, 8}) one(1000, chunks);
}
