// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "benchmarks/cases/gradients.h"
#include "core/ops/attention.h"
#include "core/ops/linear.h"
#include "core/ops/random.h"

// Square matrix products, the linear layer of a transformer's feed-forward part (2048 rows, 768 to 3072), and the
// attention of a ViT-S/16 block (8 images of 197 tokens, 6 heads of 64 channels) from its packed projection.

namespace weft::benchmarks {

void add_matmul_cases(Cases& cases, const Target& target) {
  for (const int64_t full : {1024, 2048})
    for (const DType dtype : {DType::f32, DType::bf16})
      cases.push_back({str("matmul_", full, "_", name(dtype)), "GFLOP/s", [=] {
                         const int64_t n = target.size(full, 16);
                         const Op op{
                             {normal({n, n}, 0, 1, dtype, target.device), normal({n, n}, 0, 1, dtype, target.device)},
                             [](const auto& in) { return matmul(in[0], in[1]); }};
                         return forward(target, op, 2.0 * static_cast<double>(n * n * n));
                       }});
  add_op_cases(cases, target, "linear", [target] {
    const int64_t rows = target.size(2048, 8), in = target.size(768, 16), out = target.size(3072, 24);
    return Op{
        {normal({rows, in}, 0, 1, DType::f32, target.device), normal({out, in}, 0, 0.03, DType::f32, target.device),
         normal({out}, 0, 0.03, DType::f32, target.device)},
        [](const auto& x) { return linear(x[0], x[1], x[2]); }};
  });
  for (const DType dtype : {DType::f32, DType::bf16})
    add_op_cases(cases, target, str("attention_", name(dtype)), [=] {
      const int64_t N = target.size(8, 2), T = target.size(197, 9), H = target.size(6, 2), D = target.size(64, 8);
      return Op{{normal({N, T, 3, H, D}, 0, 1, dtype, target.device)},
                [](const auto& x) { return attention_packed(x[0]); }};
    });
}

}  // namespace weft::benchmarks
