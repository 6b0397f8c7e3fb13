// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"

// Matrix products and convolutions on a GPU, in TFLOP/s (2 per multiply-add): square matrices, and the convolutions of
// ResNet-50's stages at batch 64.

namespace weft::benchmarks {

void add_gpu_matmul_cases(Cases& cases, const Target& target) {
  for (const int64_t full : {1024, 2048, 4096, 8192})
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const int64_t n = target.size(full, 64);
      const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      cases.push_back({str("matmul_", full, "_", name(dtype)), "TFLOP/s", [=] {
                         const Op op{
                             {normal({n, n}, 0, 1, dtype, target.device), normal({n, n}, 0, 1, dtype, target.device)},
                             [](const auto& in) { return matmul(in[0], in[1]); }};
                         return forward(target, op, flop);
                       }});
    }
}

void add_gpu_convolution_cases(Cases& cases, const Target& target) {
  struct Size {
    const char* name;
    int64_t kernel, in, out, edge, stride;
  };
  constexpr Size kSizes[] = {{"conv7x7_3_64_224", 7, 3, 64, 224, 2},
                             {"conv3x3_64_64_56", 3, 64, 64, 56, 1},
                             {"conv1x1_256_64_56", 1, 256, 64, 56, 1},
                             {"conv3x3_128_128_28", 3, 128, 128, 28, 1},
                             {"conv3x3_512_512_7", 3, 512, 512, 7, 1}};
  for (const Size& size : kSizes)
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const int64_t N = target.size(64, 2), E = target.size(size.edge, 8);
      const int64_t C = target.size(size.in, size.in % 8 == 0 ? 16 : size.in), O = target.size(size.out, 16);
      const int64_t R = size.kernel, P = (E - 1) / size.stride + 1;
      const double flop = 2.0 * static_cast<double>(N * P * P * O) * static_cast<double>(R * R * C);
      const auto make = [=] {
        return Op{
            {normal({N, E, E, C}, 0, 1, dtype, target.device), normal({O, R, R, C}, 0, 0.05, dtype, target.device)},
            [=](const auto& in) {
              return conv2d(in[0], in[1], {}, {.stride = {size.stride, size.stride}, .padding = {R / 2, R / 2}});
            }};
      };
      add_op_cases(cases, target, str(size.name, "_", name(dtype)), make, {"TFLOP/s", flop});
    }
}

}  // namespace weft::benchmarks
