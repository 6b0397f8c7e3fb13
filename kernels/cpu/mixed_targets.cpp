// SPDX-License-Identifier: Apache-2.0
#include "kernels/mixed_targets.h"

#include <algorithm>
#include <limits>

namespace weft::kernels::cpu {

void mixed_targets(const Queue&, const View& targets, const View& labels, double own) {
  WEFT_CHECK(targets.rank == 2 && labels.rank == 1 && targets.sizes[0] == labels.sizes[0] &&
                 targets.dtype == DType::f32 && targets.is_contiguous() && labels.is_contiguous(),
             "mixed_targets: expected contiguous targets f32 [N, C] and labels [N], got ", targets, " and ", labels);
  const int64_t N = targets.sizes[0], C = targets.sizes[1];
  const int64_t* label = labels.as<int64_t>();
  const auto is_class = [&](int64_t c) { return c >= 0 && c < C; };
  for (int64_t n = 0; n < N; ++n) {
    const int64_t before = label[n == 0 ? N - 1 : n - 1];
    float* row = targets.as<float>() + n * C;
    const bool known = is_class(label[n]) && is_class(before);
    std::fill(row, row + C, known ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    if (!known) continue;
    row[label[n]] += static_cast<float>(own);
    row[before] += static_cast<float>(1 - own);
  }
}

}  // namespace weft::kernels::cpu
