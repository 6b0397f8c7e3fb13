// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/attention.h"
#include "core/ops/linear.h"
#include "core/ops/random.h"
#include "core/ops/unary.h"

// The two halves of a ViT-B/16 block at batch 64 (197 tokens, width 768, 12 heads), in bf16 and milliseconds.

namespace weft::benchmarks {

void add_gpu_transformer_cases(Cases& cases, const Target& target) {
  const Device device = target.device;
  const int64_t N = target.size(64, 2), T = target.size(197, 9), D = target.size(768, 32), H = target.size(12, 2);
  const DType bf16 = DType::bf16;
  add_op_cases(cases, target, "vit_attention_bf16", [=] {
    const auto heads = [=] { return normal({N, T, H, D / H}, 0, 1, bf16, device); };
    return Op{{heads(), heads(), heads()}, [](const auto& x) { return attention(x[0], x[1], x[2]); }};
  });
  add_op_cases(cases, target, "vit_mlp_bf16", [=] {
    return Op{{normal({N * T, D}, 0, 1, bf16, device), normal({4 * D, D}, 0, 0.03, bf16, device),
               normal({4 * D}, 0, 0.03, bf16, device), normal({D, 4 * D}, 0, 0.03, bf16, device),
               normal({D}, 0, 0.03, bf16, device)},
              [](const auto& x) { return linear(gelu(linear(x[0], x[1], x[2])), x[3], x[4]); }};
  });
}

}  // namespace weft::benchmarks
