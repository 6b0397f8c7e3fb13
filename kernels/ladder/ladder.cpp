// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/ladder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weft::kernels::ladder {

namespace {

std::vector<Step>& registered() {
  static std::vector<Step> steps;
  return steps;
}

double count(const std::vector<int64_t>& sizes) {
  double n = 1;
  for (const int64_t size : sizes) n *= static_cast<double>(size);
  return n;
}

Problem matmul(DType dtype, std::span<const int64_t> s) {
  const int64_t M = s[0], N = s[1], K = s[2];
  return {dtype, {{M, K}, {K, N}}, {M, N}, 2.0 * static_cast<double>(M * N) * static_cast<double>(K)};
}
Problem matmul_f32(std::span<const int64_t> s) { return matmul(DType::f32, s); }
Problem matmul_bf16(std::span<const int64_t> s) { return matmul(DType::bf16, s); }

Problem conv2d(std::span<const int64_t> s) {
  const int64_t N = s[0], H = s[1], W = s[2], C = s[3], O = s[4], R = s[5];
  const double flop = 2.0 * static_cast<double>(N * H * W) * static_cast<double>(R * R * C * O);
  return {DType::bf16, {{N, H, W, C}, {O, R, R, C}}, {N, H, W, O}, flop};
}
Problem attention(std::span<const int64_t> s) {
  const int64_t G = s[0], L = s[1], D = s[2];
  const std::vector<int64_t> heads{G, L, D};
  return {DType::bf16, {heads, heads, heads}, heads, 4.0 * static_cast<double>(G * L * D) * static_cast<double>(L)};
}
Problem reduce(std::span<const int64_t> s) { return {DType::f32, {{s[0]}}, {1}}; }
Problem transpose(std::span<const int64_t> s) { return {DType::f32, {{s[0], s[1]}}, {s[1], s[0]}}; }
Problem softmax(std::span<const int64_t> s) { return {DType::f32, {{s[0], s[1]}}, {s[0], s[1]}}; }

}  // namespace

const std::vector<Ladder>& all() {
  static const std::vector<Ladder> ladders = {
      {"transpose", "y[N,M] = x[M,N] turned, f32", "M N", nullptr, transpose, {8192, 8192}, {128, 96}},
      {"reduce", "y = sum of x[N], f32", "N", nullptr, reduce, {1 << 26}, {1 << 16}},
      {"softmax", "y[m,c] = exp(x[m,c]) / sum of exp(x[m,:]), f32", "M C", nullptr, softmax, {65536, 1024}, {128, 256}},
      {"matmul_f32",
       "y[M,N] = a[M,K] b[K,N], f32",
       "M N K",
       "cuBLASLt",
       matmul_f32,
       {4096, 4096, 4096},
       {128, 128, 64}},
      {"matmul_bf16",
       "y[M,N] = a[M,K] b[K,N], bf16, sums in f32",
       "M N K",
       "cuBLASLt",
       matmul_bf16,
       {4096, 4096, 4096},
       {256, 256, 128}},
      {"conv2d",
       "y[n,h,w,o] = sum of x[n,h+r-R/2,w+s-R/2,c] f[o,r,s,c], bf16",
       "N H W C O R",
       "cuDNN",
       conv2d,
       {64, 56, 56, 64, 64, 3},
       {1, 8, 8, 32, 64, 3}},
      {"attention",
       "y[g] = softmax(q[g] k[g]^T / sqrt(D)) v[g], bf16, D = 64",
       "G L D",
       nullptr,
       attention,
       {64, 2048, 64},
       {1, 128, 64}},
  };
  return ladders;
}

const Ladder& find(const std::string& name) {
  std::string known;
  for (const Ladder& ladder : all()) {
    if (ladder.name == name) return ladder;
    known += str(known.empty() ? "" : ", ", ladder.name);
  }
  fail("ladder: expected one of ", known, ", got '", name, "'");
}

std::vector<Step> steps(const Ladder& ladder) {
  const std::string folder = str(ladder.name, "/");
  std::vector<Step> found;
  for (const Step& step : registered())
    if (std::strncmp(step.name, folder.c_str(), folder.size()) == 0) found.push_back(step);
  std::sort(found.begin(), found.end(), [](const Step& a, const Step& b) { return a.number() < b.number(); });
  return found;
}

void add(const Step& step) { registered().push_back(step); }

std::string Step::title() const { return std::strchr(name, '/') + 1; }
int Step::number() const { return static_cast<int>(std::strtol(std::strchr(name, '/') + 1, nullptr, 10)); }

double Problem::bytes() const {
  double elements = count(output);
  for (const auto& input : inputs) elements += count(input);
  return elements * static_cast<double>(size_of(dtype));
}

}  // namespace weft::kernels::ladder
