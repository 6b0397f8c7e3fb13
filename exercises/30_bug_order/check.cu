// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include "check.h"

void run(Check& check, bool measure) {
  const std::vector<std::vector<int>> orders[] = {
      {{2, 1, 0}, {2, 1, 0}}, {{2, 1, 0}, {1, 2, 0}}, {{3, 1, 2, 0}, {3, 2, 1, 0}}};
  for (size_t o = measure ? 2 : 0; o < 3; ++o) {
    const int ranks = 2, layers = static_cast<int>(orders[o][0].size());
    std::vector<std::vector<float>> numbers, got(ranks * layers);
    for (int i = 0; i < ranks * layers; ++i) numbers.push_back(check.numbers(100 + i % layers * 50));
    int early = 0;
    on_ranks(ranks, [&](const Rank& r) {
      std::vector<Device<float>*> memory;
      std::vector<float*> gradients;
      std::vector<int> sizes;
      for (int l = 0; l < layers; ++l) {
        sizes.push_back(static_cast<int>(numbers[l].size()));
        memory.push_back(new Device<float>(sizes[l]));
        gradients.push_back(*memory[l]);
      }
      size_t done = 0;
      const auto next = [&](cudaStream_t stream) {
        if (done == orders[o][r.rank].size()) {
          if (r.rank == 0) early = reductions[0];
          return -1;
        }
        const int l = orders[o][r.rank][done++];
        cudaMemcpyAsync(gradients[l], numbers[r.rank * layers + l].data(), sizes[l] * sizeof(float),
                        cudaMemcpyHostToDevice, stream);
        return l;
      };
      backward(next, layers, gradients.data(), sizes.data(), r.comm, r.compute);
      cudaStreamSynchronize(r.compute);
      for (int l = 0; l < layers; ++l) got[r.rank * layers + l] = memory[l]->download();
      for (const auto* one : memory) delete one;
    });
    for (int i = 0; i < ranks * layers; ++i) {
      std::vector<float> expected(numbers[i % layers]);
      for (size_t k = 0; k < expected.size(); ++k) expected[k] += numbers[layers + i % layers][k];
      check.equal("order " + std::to_string(o) + ", rank " + std::to_string(i / layers) + ", layer " +
                      std::to_string(i % layers),
                  got[i], expected);
    }
    if (measure) check.count("early", early);
  }
}
