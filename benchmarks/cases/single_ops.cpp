// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/layers/attention.h"
#include "core/ops/layers/batch_norm.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"

// Single ops of the suite cpu, at sizes of ResNets and ViT-S/16.

namespace weft::benchmarks {
namespace {

Op batch_norm_op(const Target& target) {
  const int64_t N = target.size(32, 2), E = target.size(56, 5), C = target.size(64, 8);
  const Tensor mean = Tensor::zeros({C}, DType::f32, target.device);
  const Tensor var = Tensor::ones({C}, DType::f32, target.device);
  return {{normal({N, E, E, C}, 0, 1, DType::f32, target.device), normal({C}, 1, 0.1, DType::f32, target.device),
           normal({C}, 0, 0.1, DType::f32, target.device)},
          [mean, var](const auto& in) { return batch_norm(in[0], in[1], in[2], mean, var, {.training = true}); }};
}

Op layer_norm_op(const Target& target) {
  const int64_t rows = target.size(4096, 6), C = target.size(768, 24);
  return {{normal({rows, C}, 0, 1, DType::f32, target.device), normal({C}, 1, 0.1, DType::f32, target.device),
           normal({C}, 0, 0.1, DType::f32, target.device)},
          [](const auto& in) { return layer_norm(in[0], in[1], in[2]); }};
}

Op cross_entropy_op(const Target& target) {
  const int64_t rows = target.size(4096, 6), C = target.size(1000, 10);
  std::vector<int64_t> labels(static_cast<size_t>(rows));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i * 7919) % C;
  return {{normal({rows, C}, 0, 1, DType::f32, target.device), Tensor::from(labels, target.device)},
          [](const auto& in) { return cross_entropy(in[0], in[1]); }};
}

}  // namespace

// The convolution that ResNets spend most of their time in: 3x3, 64 to 64 channels, 56x56, batch 8.
void add_convolution_cases(Cases& cases, const Target& target) {
  add_op_cases(cases, target, "conv3x3", [target] {
    const int64_t N = target.size(8, 2), E = target.size(56, 6), C = target.size(64, 8);
    return Op{{normal({N, E, E, C}, 0, 1, DType::f32, target.device),
               normal({C, 3, 3, C}, 0, 0.05, DType::f32, target.device)},
              [](const auto& in) {
                return conv2d(in[0], in[1], {}, {.padding = {1, 1}});
              }};
  });
}

// Square matrix products, and the linear layer of a transformer's feed-forward part (2048 rows, 768 to 3072). Also the
// attention of a ViT-S/16 block (8 images of 197 tokens, 6 heads of 64 channels) from its packed projection.
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

// Batch norm in training (32x56x56x64), layer norm (4096x768), cross entropy (4096x1000).
void add_norm_cases(Cases& cases, const Target& target) {
  add_op_cases(cases, target, "batch_norm", [target] { return batch_norm_op(target); });
  add_op_cases(cases, target, "layer_norm", [target] { return layer_norm_op(target); });
  cases.push_back({"cross_entropy_forward_backward", "ms",
                   [target] { return forward_backward(target, cross_entropy_op(target)); }});
}

// Addition of 16 Mi elements, into a new tensor and in place: two reads and one write, so GB/s of memory traffic.
void add_elementwise_cases(Cases& cases, const Target& target) {
  const int64_t n = target.size(int64_t{1} << 24, 1 << 10);
  const double bytes = 3.0 * 4 * static_cast<double>(n);
  const auto operands = [=] {
    return std::vector<Tensor>{normal({n}, 0, 1, DType::f32, target.device),
                               normal({n}, 0, 1, DType::f32, target.device)};
  };
  cases.push_back({"add_16m", "GB/s", [=] {
                     return forward(target, {operands(), [](const auto& in) { return add(in[0], in[1]); }}, bytes);
                   }});
  cases.push_back({"add_inplace_16m", "GB/s", [=] {
                     return forward(target, {operands(), [](const auto& in) { return in[0].add_(in[1]); }}, bytes);
                   }});
}

}  // namespace weft::benchmarks
