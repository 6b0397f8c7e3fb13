// SPDX-License-Identifier: Apache-2.0
#include "dist/pipeline/schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

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

std::vector<std::vector<PipelineMessage>> pipeline_messages(const PipelineSize& size, int stage, bool trains) {
  const int P = size.stages, last = P * size.chunks - 1;
  struct StageClock {
    std::vector<PipelineStep> steps;
    std::vector<int64_t> begins;  // times at which steps began
    int64_t now = 0;
  };
  std::vector<StageClock> clocks;
  for (int s = 0; s < P; ++s) {
    clocks.push_back({.steps = pipeline_schedule(size, s), .begins = {}});
    if (!trains) std::erase_if(clocks.back().steps, [](const PipelineStep& step) { return step.backward; });
  }
  std::map<std::tuple<bool, int, int64_t>, int64_t> ends;  // backward, stretch, micro-batch
  for (bool moves = true; moves;) {
    moves = false;
    for (int s = 0; s < P; ++s) {
      StageClock& clock = clocks[static_cast<size_t>(s)];
      while (clock.begins.size() < clock.steps.size()) {
        const auto [backward, chunk, micro] = clock.steps[clock.begins.size()];
        const int stretch = chunk * P + s;
        if (stretch != (backward ? last : 0)) {
          const auto input = ends.find({backward, backward ? stretch + 1 : stretch - 1, micro});
          if (input == ends.end()) break;
          clock.now = std::max(clock.now, input->second);
        }
        clock.begins.push_back(clock.now);
        clock.now += backward ? 2 : 1;
        ends.emplace(std::tuple(backward, stretch, micro), clock.now);
        moves = true;
      }
    }
  }
  std::vector<std::pair<int64_t, PipelineMessage>> order;
  for (const auto& [step, end] : ends) {
    const auto [backward, from, micro] = step;
    if (from == (backward ? 0 : last)) continue;
    const int to = backward ? from - 1 : from + 1;
    if (from % P == stage) order.push_back({end, {backward, to, micro, true}});
    if (to % P == stage) order.push_back({end, {backward, to, micro, false}});
  }
  std::ranges::sort(order);
  const std::vector<int64_t>& begins = clocks[static_cast<size_t>(stage)].begins;
  std::vector<std::vector<PipelineMessage>> messages(begins.size() + 1);
  for (const auto& [end, message] : order)
    messages[static_cast<size_t>(std::ranges::lower_bound(begins, end) - begins.begin())].push_back(message);
  return messages;
}

}  // namespace weft::dist
