// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "benchmarks/peers/libtorch/gradients.h"

// Convolution, matrix products, attention, norms, the loss and addition.

namespace peer {

void add_convolution_cases(Cases& cases, const Target& target) {
  const int64_t N = target.size(8, 2), E = target.size(56, 6), C = target.size(64, 8);
  for (const Layout layout : kLayouts)
    add_op_cases(cases, "conv3x3", layout, [=] {
      return Op{{in_layout(torch::randn({N, C, E, E}), layout), in_layout(torch::randn({C, C, 3, 3}) * 0.05, layout)},
                [](const auto& in) { return torch::conv2d(in[0], in[1], {}, 1, 1); }};
    });
}

void add_matmul_cases(Cases& cases, const Target& target) {
  for (const int64_t full : {1024, 2048})
    for (const bool bf16 : {false, true})
      cases.push_back({"matmul_" + std::to_string(full) + (bf16 ? "_bf16" : "_f32"), "GFLOP/s", [=] {
                         const int64_t n = target.size(full, 16);
                         const auto dtype = bf16 ? torch::kBFloat16 : torch::kFloat32;
                         const Op op{{torch::randn({n, n}).to(dtype), torch::randn({n, n}).to(dtype)},
                                     [](const auto& in) { return torch::matmul(in[0], in[1]); }};
                         return forward(op, 2.0 * static_cast<double>(n * n * n));
                       }});
  const int64_t rows = target.size(2048, 8), in = target.size(768, 16), out = target.size(3072, 24);
  add_op_cases(cases, "linear", Layout::nchw, [=] {
    return Op{{torch::randn({rows, in}), torch::randn({out, in}) * 0.03, torch::randn({out}) * 0.03},
              [](const auto& x) { return torch::linear(x[0], x[1], x[2]); }};
  });
  for (const bool bf16 : {false, true})
    add_op_cases(cases, bf16 ? "attention_bf16" : "attention_f32", Layout::nchw, [=] {
      const int64_t batch = target.size(8, 2), T = target.size(197, 9), H = target.size(6, 2), D = target.size(64, 8);
      return Op{{torch::randn({batch, T, 3, H, D}).to(bf16 ? torch::kBFloat16 : torch::kFloat32)}, [=](const auto& x) {
                  const auto parts = x[0].permute({2, 0, 3, 1, 4}).unbind(0);  // [batch, H, T, D] each
                  const double scale = 1 / std::sqrt(static_cast<double>(D));
                  const Tensor weights = torch::softmax(torch::matmul(parts[0] * scale, parts[1].transpose(2, 3)), -1);
                  return torch::matmul(weights, parts[2]).transpose(1, 2).contiguous();
                }};
    });
}

void add_norm_cases(Cases& cases, const Target& target) {
  const int64_t N = target.size(32, 2), E = target.size(56, 5), C = target.size(64, 8);
  for (const Layout layout : kLayouts)
    add_op_cases(cases, "batch_norm", layout, [=] {
      const Tensor mean = torch::zeros({C}), var = torch::ones({C});
      return Op{{in_layout(torch::randn({N, C, E, E}), layout), 1 + 0.1 * torch::randn({C}), 0.1 * torch::randn({C})},
                [=](const auto& x) { return torch::batch_norm(x[0], x[1], x[2], mean, var, true, 0.1, 1e-5, true); }};
    });
  const int64_t rows = target.size(4096, 6), width = target.size(768, 24), classes = target.size(1000, 10);
  add_op_cases(cases, "layer_norm", Layout::nchw, [=] {
    return Op{{torch::randn({rows, width}), 1 + 0.1 * torch::randn({width}), 0.1 * torch::randn({width})},
              [=](const auto& x) { return torch::layer_norm(x[0], {width}, x[1], x[2]); }};
  });
  cases.push_back({"cross_entropy_forward_backward", "ms", [=] {
                     return forward_backward({{torch::randn({rows, classes}), torch::arange(rows) * 7919 % classes},
                                              [](const auto& x) { return torch::cross_entropy_loss(x[0], x[1]); }});
                   }});
}

void add_elementwise_cases(Cases& cases, const Target& target) {
  const int64_t n = target.size(int64_t{1} << 24, 1 << 10);
  const double bytes = 3.0 * 4 * static_cast<double>(n);
  cases.push_back(
      {"add_16m", "GB/s", [=] {
         return forward(
             {{torch::randn({n}), torch::randn({n})}, [](const auto& in) { return torch::add(in[0], in[1]); }}, bytes);
       }});
  cases.push_back({"add_inplace_16m", "GB/s", [=] {
                     return forward(
                         {{torch::randn({n}), torch::randn({n})}, [](const auto& in) { return in[0].add_(in[1]); }},
                         bytes);
                   }});
}

}  // namespace peer
