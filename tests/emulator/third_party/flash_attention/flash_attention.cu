// SPDX-License-Identifier: Apache-2.0
// Runs the forward pass of FlashAttention-2 (its csrc/flash_attn/src is an include folder) or, with -DHOPPER, of
// FlashAttention-3 (its hopper/), without PyTorch. Compares with attention in f64. Arguments: none. Prints a line for
// each case; exit code 1 when one is wrong. -DELEMENT=half_t|bfloat16_t and -DHEAD=64|128 choose the instance.
#include "flash_fwd_launch_template.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

namespace {

#ifdef HOPPER
using Params = Flash_fwd_params;
constexpr const char* kName = "FlashAttention-3";
#else
using Params = flash::Flash_fwd_params;
constexpr const char* kName = "FlashAttention-2";
#endif
using Element = cutlass::ELEMENT;
constexpr int kHead = HEAD;

struct Problem {
  int batch, queries, keys, heads, key_heads;
  bool causal;
};

/// Numbers of N(0, 1) as the kernel sees them, [batch, rows, heads, kHead], on the device and on the host.
struct Numbers {
  Numbers(const int batch, const int rows, const int heads, std::mt19937& random)
      : rows(rows), heads(heads), host(static_cast<size_t>(batch) * rows * heads * kHead) {
    std::normal_distribution<float> numbers(0, 1);
    for (Element& x : host) x = Element(numbers(random));
    cudaMalloc(&device, host.size() * sizeof(Element));
    cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice);
  }
  double at(const int b, const int row, const int head, const int d) const {
    return static_cast<double>(
        static_cast<float>(host[((static_cast<size_t>(b) * rows + row) * heads + head) * kHead + d]));
  }
  int64_t row_stride() const { return static_cast<int64_t>(heads) * kHead; }
  int64_t batch_stride() const { return rows * row_stride(); }

  int rows, heads;
  std::vector<Element> host;
  void* device = nullptr;
};

bool run(const Problem& s) {
  std::mt19937 random(1);
  const Numbers q(s.batch, s.queries, s.heads, random), k(s.batch, s.keys, s.key_heads, random);
  const Numbers v(s.batch, s.keys, s.key_heads, random);
  Numbers out(s.batch, s.queries, s.heads, random);
  float* lse = nullptr;
  const size_t sums = static_cast<size_t>(s.batch) * s.heads * s.queries;
  cudaMalloc(&lse, sums * sizeof *lse);
  cudaMemset(out.device, 0xff, out.host.size() * sizeof(Element));
  const float scale = 1 / std::sqrt(static_cast<float>(kHead));

  Params p{};
  p.q_ptr = q.device, p.k_ptr = k.device, p.v_ptr = v.device, p.o_ptr = out.device, p.softmax_lse_ptr = lse;
  p.q_row_stride = q.row_stride(), p.k_row_stride = k.row_stride(), p.v_row_stride = v.row_stride();
  p.o_row_stride = out.row_stride();
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = kHead;
  p.q_batch_stride = q.batch_stride(), p.k_batch_stride = k.batch_stride(), p.v_batch_stride = v.batch_stride();
  p.o_batch_stride = out.batch_stride();
  const auto rounded = [](const int n) { return (n + 127) / 128 * 128; };
  p.b = s.batch, p.h = s.heads, p.h_k = s.key_heads, p.seqlen_q = s.queries, p.seqlen_k = s.keys,
  p.d = p.d_rounded = kHead;
  p.seqlen_q_rounded = rounded(s.queries), p.seqlen_k_rounded = rounded(s.keys);
  p.scale_softmax = scale;
  p.p_dropout = p.rp_dropout = 1, p.p_dropout_in_uint8_t = 255;
  p.is_bf16 = std::is_same_v<Element, cutlass::bfloat16_t>, p.is_causal = s.causal;
  p.num_splits = 1;
#ifdef HOPPER
  p.v_dim_stride = 1, p.dv = p.dv_rounded = kHead, p.b_k = s.batch;
  p.total_q = s.batch * s.queries, p.total_k = s.batch * s.keys;
  p.window_size_left = s.keys - 1, p.window_size_right = s.causal ? 0 : s.queries - 1;
  p.arch = 90, p.num_sm = 132;
  int* next_tile = nullptr;
  cudaMalloc(&next_tile, sizeof *next_tile);
  cudaMemset(next_tile, 0, sizeof *next_tile);
  p.tile_count_semaphore = next_tile;
#else
  p.h_h_k_ratio = s.heads / s.key_heads;
  p.scale_softmax_log2 = scale * static_cast<float>(M_LOG2E), p.scale_softmax_rp_dropout = scale;
  p.window_size_left = -1, p.window_size_right = s.causal ? 0 : -1;
#endif
  const auto begin = std::chrono::steady_clock::now();
#ifdef HOPPER
  run_mha_fwd_<90, Element, kHead, kHead, false, false, false, false>(p, nullptr);
#else
  const auto launch = [&](auto causal) {
    if constexpr (kHead == 64) flash::run_mha_fwd_hdim64<Element, decltype(causal)::value>(p, nullptr);
    if constexpr (kHead == 128) flash::run_mha_fwd_hdim128<Element, decltype(causal)::value>(p, nullptr);
  };
  s.causal ? launch(std::true_type{}) : launch(std::false_type{});
#endif
  const cudaError_t status = cudaDeviceSynchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<float> sums_got(sums);
  cudaMemcpy(out.host.data(), out.device, out.host.size() * sizeof(Element), cudaMemcpyDeviceToHost);
  cudaMemcpy(sums_got.data(), lse, sums * sizeof *lse, cudaMemcpyDeviceToHost);

  double worst = 0, worst_sum = 0;
  std::vector<double> weights(static_cast<size_t>(s.keys));
  for (int b = 0; b < s.batch; ++b)
    for (int h = 0; h < s.heads; ++h)
      for (int i = 0; i < s.queries; ++i) {
        // Causal: the last query sees all keys. A query that sees none gives 0.
        const int seen = s.causal ? std::max(0, std::min(s.keys, i + 1 + s.keys - s.queries)) : s.keys;
        const int kh = h / (s.heads / s.key_heads);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int j = 0; j < seen; ++j) {
          double dot = 0;
          for (int d = 0; d < kHead; ++d) dot += q.at(b, i, h, d) * k.at(b, j, kh, d);
          weights[static_cast<size_t>(j)] = dot * scale;
          largest = std::max(largest, dot * scale);
        }
        for (int j = 0; j < seen; ++j)
          sum += weights[static_cast<size_t>(j)] = std::exp(weights[static_cast<size_t>(j)] - largest);
        for (int d = 0; d < kHead; ++d) {
          double expected = 0;
          for (int j = 0; j < seen; ++j) expected += weights[static_cast<size_t>(j)] / sum * v.at(b, j, kh, d);
          const double error = std::fabs(out.at(b, i, h, d) - expected);
          worst = error <= worst ? worst : error;  // NaN counts
        }
        if (seen) {
          const double got = static_cast<double>(sums_got[(static_cast<size_t>(b) * s.heads + h) * s.queries + i]);
          const double error = std::fabs(got - (largest + std::log(sum)));
          worst_sum = error <= worst_sum ? worst_sum : error;
        }
      }
  const double allowed = p.is_bf16 ? 2e-2 : 3e-3;
  const bool passed = status == cudaSuccess && worst < allowed && worst_sum < 1e-3;
  std::printf(
      "%s %s %s head %d, %d x %d queries %d keys %d heads of %d%s: %.2f s, largest error %.1e, of the sums %.1e\n",
      passed ? "ok" : "FAILED", kName, p.is_bf16 ? "bf16" : "f16", kHead, s.batch, s.queries, s.keys, s.heads,
      s.key_heads, s.causal ? ", causal" : "", seconds, worst, worst_sum);
  if (status != cudaSuccess) std::printf("  CUDA says: %s\n", cudaGetErrorName(status));
  std::fflush(stdout);
  return passed;
}

}  // namespace

int main() {
  int failed = 0;
  for (const bool causal : {false, true})
    for (const Problem& s :
         {Problem{1, 128, 128, 2, 2, causal}, Problem{2, 200, 200, 2, 1, causal}, Problem{1, 65, 257, 2, 2, causal}})
      failed += run(s) ? 0 : 1;
  return failed ? 1 : 0;
}
