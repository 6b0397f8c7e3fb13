// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/conv2d.h"
#include "core/ops/random.h"

// The convolution that ResNets spend most of their time in: 3x3, 64 to 64 channels, 56x56, batch 8.

namespace weft::benchmarks {

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

}  // namespace weft::benchmarks
