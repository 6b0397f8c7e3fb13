// SPDX-License-Identifier: Apache-2.0
#include "tests/ladder/reference.h"

#include <cmath>
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

Reference transpose(const Problem& p, const Inputs& in) {
  const int64_t N = p.output[0], M = p.output[1];
  Values y(in[0].size());
  for (int64_t n = 0; n < N; ++n)
    for (int64_t m = 0; m < M; ++m) y[n * M + m] = in[0][m * N + n];
  return {y, 1};
}

Reference reduce(const Problem&, const Inputs& in) {
  double sum = 0;
  for (const double value : in[0]) sum += value;
  return {{sum}, static_cast<int64_t>(in[0].size())};
}

Reference softmax(const Problem& p, const Inputs& in) {
  const int64_t M = p.output[0], C = p.output[1];
  Values y(in[0].size());
  for (int64_t m = 0; m < M; ++m) {
    double sum = 0;
    for (int64_t c = 0; c < C; ++c) sum += y[m * C + c] = std::exp(in[0][m * C + c]);
    for (int64_t c = 0; c < C; ++c) y[m * C + c] /= sum;
  }
  return {y, C};
}

Reference conv2d(const Problem& p, const Inputs& in) {
  const int64_t H = p.output[1], W = p.output[2], O = p.output[3], R = p.inputs[1][1], C = p.inputs[1][3];
  Values y(static_cast<size_t>(p.output[0] * H * W * O));
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t o = static_cast<int64_t>(i) % O, pixel = static_cast<int64_t>(i) / O;
    for (int64_t tap = 0; tap < R * R; ++tap) {
      const int64_t h = pixel / W % H + tap / R - R / 2, w = pixel % W + tap % R - R / 2;
      if (h < 0 || h >= H || w < 0 || w >= W) continue;
      for (int64_t c = 0; c < C; ++c)
        y[i] += in[0][((pixel / (H * W) * H + h) * W + w) * C + c] * in[1][(o * R * R + tap) * C + c];
    }
  }
  return {y, R * R * C};
}

Reference attention(const Problem& p, const Inputs& in) {
  const int64_t G = p.output[0], L = p.output[1], D = p.output[2];
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  Values y(in[0].size());
  for (int64_t i = 0; i < G * L; ++i) {
    const int64_t first = i / L * L;
    double sum = 0;
    for (int64_t j = first; j < first + L; ++j) {
      double score = 0;
      for (int64_t d = 0; d < D; ++d) score += scale * in[0][i * D + d] * in[1][j * D + d];
      const double weight = std::exp(score);
      sum += weight;
      for (int64_t d = 0; d < D; ++d) y[i * D + d] += weight * in[2][j * D + d];
    }
    for (int64_t d = 0; d < D; ++d) y[i * D + d] /= sum;
  }
  return {y, L};
}

}  // namespace

Reference reference(const kernels::ladder::Ladder& ladder, const Problem& problem, const Inputs& inputs) {
  static const std::map<std::string, Reference (*)(const Problem&, const Inputs&)> known = {
      {"transpose", transpose}, {"reduce", reduce}, {"softmax", softmax},     {"matmul_f32", matmul},
      {"matmul_bf16", matmul},  {"conv2d", conv2d}, {"attention", attention},
  };
  return known.at(ladder.name)(problem, inputs);
}

}  // namespace weft::tests
