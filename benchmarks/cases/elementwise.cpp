// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/add.h"
#include "core/ops/random.h"

// Addition of 16 Mi elements, into a new tensor and in place: two reads and one write, so GB/s of memory traffic.

namespace weft::benchmarks {

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
