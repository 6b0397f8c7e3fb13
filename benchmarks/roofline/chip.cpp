// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/roofline/chip.h"

#include <algorithm>

namespace weft::benchmarks {

Floor floor_of(const kernels::KernelCost& cost, const Chip& chip, Ceiling ceiling) {
  const bool measured = ceiling == Ceiling::measured;
  const bool tensor_cores = cost.product == DType::bf16 || cost.product == DType::f16;
  const double rate = !tensor_cores ? chip.f32 : measured ? chip.measured_bf16 : chip.bf16;
  const Floor candidates[] = {
      {static_cast<double>(cost.bytes) / (measured ? chip.measured_bandwidth : chip.bandwidth), Bound::memory},
      {cost.flop / rate, Bound::product},
      {cost.arithmetic / chip.f32, Bound::arithmetic}};
  return *std::max_element(std::begin(candidates), std::end(candidates),
                           [](const Floor& a, const Floor& b) { return a.seconds < b.seconds; });
}

std::string_view name(Bound bound) {
  return bound == Bound::memory ? "memory" : bound == Bound::product ? "product" : "arithmetic";
}

}  // namespace weft::benchmarks
