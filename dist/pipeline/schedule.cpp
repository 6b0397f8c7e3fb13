// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/schedule.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::dist {

std::vector<PipelineStep> pipeline_schedule(const PipelineSize& size, int stage) {
  const auto [P, V, M] = size;
  WEFT_CHECK(P > 0 && V > 0 && M > 0 && stage >= 0 && stage < P, "pipeline schedule: expected a stage of ", P,
             " and at least one chunk and micro-batch, got stage ", stage, ", ", V, " chunks, ", M, " micro-batches");
  std::vector<PipelineStep> forwards, steps;
  const int64_t groups = V == 1 ? M : std::max<int64_t>(M / P, 1);
  int64_t largest = 1;
  for (int64_t group = 0, first = 0; group < groups; ++group) {
    const int64_t last = group + 1 == groups ? M : first + (V == 1 ? 1 : P);
    largest = std::max(largest, last - first);
    for (int chunk = 0; chunk < V; ++chunk)
      for (int64_t micro = first; micro < last; ++micro) forwards.push_back({false, chunk, micro});
    first = last;
  }
  const int64_t ahead = V == 1 ? P - 1 - stage : int64_t{2} * (P - 1 - stage) + (V - 1) * largest;
  const auto total = static_cast<int64_t>(forwards.size()), warmup = std::min(ahead, total);
  for (int64_t i = 0; i < total + warmup; ++i) {
    if (i < total) steps.push_back(forwards[static_cast<size_t>(i)]);
    if (i < warmup) continue;
    const PipelineStep& forward = forwards[static_cast<size_t>(i - warmup)];
    steps.push_back({true, V - 1 - forward.chunk, forward.micro});  // gradients come through the last chunk first
  }
  return steps;
}

}  // namespace weft::dist
