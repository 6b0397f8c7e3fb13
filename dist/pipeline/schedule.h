// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

namespace weft::dist {

/// The model's layers are cut into stages * chunks stretches; stage s holds stretches s, s + stages, s + 2 stages, …
struct PipelineSize {
  int stages = 1, chunks = 1;
  int64_t micro_batches = 1;
  /// Share of idle time beside the useful time, where all stretches and micro-batches take as long:
  /// (stages - 1) / (chunks micro_batches).
  double bubble() const {
    return static_cast<double>(stages - 1) / (static_cast<double>(chunks) * static_cast<double>(micro_batches));
  }
};

/// Forward or backward of a micro-batch through a chunk.
struct PipelineStep {
  bool backward = false;
  int chunk = 0;
  int64_t micro = 0;
  auto operator<=>(const PipelineStep&) const = default;
};

/// The steps of `stage`, in order. With one chunk: 1F1B (Narayanan et al. 2019, "PipeDream"; with a flush, Narayanan
/// et al. 2021, "Efficient large-scale language model training on GPU clusters", section 2.2): stages - 1 - stage
/// forwards, then forwards and backwards alternate, then the backwards that are left. With more, the interleaved
/// schedule of the latter: micro-batches go through a chunk in groups of `stages`; what is left over joins the last
/// group (a group of its own would let stages wait for each other in a circle).
/// Micro-batches whose activations a stage holds at a time: at most stages - stage; interleaved, chunks of them:
/// 2 (stages - 1 - stage) + (chunks - 1) g + 1, g the largest group.
std::vector<PipelineStep> pipeline_schedule(const PipelineSize& size, int stage);

/// A stage sends or receives it between two of its steps: the input of the step that `backward`, `stretch` and `micro`
/// name, an activation or a gradient.
struct PipelineMessage {
  bool backward = false;
  int stretch = 0;  ///< the step's, on the receiving stage
  int64_t micro = 0;
  bool sends = false;
  auto operator<=>(const PipelineMessage&) const = default;
};

/// The messages of `stage` before each of its steps and after the last one, [steps + 1]. All stages follow one order:
/// the ends of the steps on a clock on which a backward takes twice a forward. So no stages wait in a circle, though
/// each waits for its messages before its next step. Without `trains`: forwards alone.
std::vector<std::vector<PipelineMessage>> pipeline_messages(const PipelineSize& size, int stage, bool trains = true);

}  // namespace weft::dist
