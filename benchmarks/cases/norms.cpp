// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/layer_norm.h"
#include "core/ops/random.h"

// Norms and the loss: batch norm in training (32x56x56x64), layer norm (4096x768), cross entropy (4096x1000).

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

void add_norm_cases(Cases& cases, const Target& target) {
  add_op_cases(cases, target, "batch_norm", [target] { return batch_norm_op(target); });
  add_op_cases(cases, target, "layer_norm", [target] { return layer_norm_op(target); });
  cases.push_back({"cross_entropy_forward_backward", "ms",
                   [target] { return forward_backward(target, cross_entropy_op(target)); }});
}

}  // namespace weft::benchmarks
