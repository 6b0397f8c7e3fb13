// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include "check.h"

void run(Check& check, bool measure) {
  for (const int layers : measure ? std::vector<int>{6} : std::vector<int>{1, 2, 5}) {
    constexpr int n = 100, ranks = 2;
    std::vector<std::vector<float>> x, w(ranks);
    for (int r = 0; r < ranks; ++r) x.push_back(check.numbers(n));
    std::vector<float> expected(n);
    for (int i = 0; i < n; ++i) expected[i] = -(x[0][i] + x[1][i]) * layers * (layers + 1) / 2;
    Check other;  // rank 1's, whose counts would be the same
    on_ranks(ranks, [&](const Rank& r) {
      const Device<float> in(x[r.rank]), gradients(layers * n), weights(std::vector<float>(n, 0.0f));
      const auto step = [&] { train_step(in, weights, gradients, layers, n, r.comm, r.compute, r.network); };
      if (measure) {
        Check& mine = r.rank == 0 ? check : other;
        mine.chain(std::to_string(layers) + " layers", r.compute, step, r.rank == 0);
      }
      step();
      cudaStreamSynchronize(r.compute);
      w[r.rank] = weights.download();
    });
    for (int r = 0; r < ranks; ++r)
      check.equal(std::to_string(layers) + " layers, rank " + std::to_string(r), w[r], expected);
  }
}
