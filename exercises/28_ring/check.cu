// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include "check.h"

void run(Check& check, bool measure) {
  for (const int ranks : measure ? std::vector<int>{4} : std::vector<int>{2, 3, 4}) {
    const int n = ranks * 100;
    std::vector<std::vector<float>> numbers, got(ranks);
    std::vector<float> expected(n);
    for (int r = 0; r < ranks; ++r) {
      numbers.push_back(check.numbers(n));
      for (int i = 0; i < n; ++i) expected[i] += numbers[r][i];
    }
    on_ranks(ranks, [&](const Rank& r) {
      const Device<float> data(numbers[r.rank]), scratch(n);
      all_reduce(data, scratch, n, r.rank, r.size, r.comm, r.compute);
      cudaStreamSynchronize(r.compute);
      got[r.rank] = data.download();
    });
    size_t most = 0;
    for (int r = 0; r < ranks; ++r) {
      most = std::max(most, numbers_sent[r].load());
      check.equal("rank " + std::to_string(r) + " of " + std::to_string(ranks), got[r], expected);
    }
    if (measure) check.count("sent", static_cast<double>(most) / n);
  }
}
