// SPDX-License-Identifier: Apache-2.0
#include "tests/ladder/reference.h"

#include <map>
#include <string>

namespace weft::tests {
namespace {

using kernels::ladder::Problem;
using Inputs = std::vector<Values>;

Reference matmul(const Problem& p, const Inputs& in) {
  const int64_t M = p.output[0], N = p.output[1], K = p.inputs[0][1];
  Values y(static_cast<size_t>(M * N));
  for (int64_t m = 0; m < M; ++m)
    for (int64_t k = 0; k < K; ++k)
      for (int64_t n = 0; n < N; ++n) y[m * N + n] += in[0][m * K + k] * in[1][k * N + n];
  return {y, K};
}

}  // namespace

Reference reference(const kernels::ladder::Ladder& ladder, const Problem& problem, const Inputs& inputs) {
  static const std::map<std::string, Reference (*)(const Problem&, const Inputs&)> known = {
      {"matmul_f32", matmul},
  };
  return known.at(ladder.name)(problem, inputs);
}

}  // namespace weft::tests
