// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/runtime/variants.h"

// Host code without CUDA: selects the keys per step of attention on Hopper (attention_*_wgmma.cuh).

namespace weft::kernels {

constexpr int kOneStepKeys = 224;

/// How the forward divides a head's keys into steps, and the backward into kernels.
struct AttentionPlan {
  int keys = 128;      ///< keys per step: 64, 128, or kOneStepKeys for a single step
  bool joint = false;  ///< whether a kernel computes dq, dk and dv together, where possible
};

/// While an object lives, attention of this thread on wgmma uses `plan`. For tests and tuning.
class AttentionPlanScope {
 public:
  explicit AttentionPlanScope(const AttentionPlan& plan) : plan_(plan), before_(current_) { current_ = this; }
  ~AttentionPlanScope() { current_ = before_; }
  AttentionPlanScope(const AttentionPlanScope&) = delete;
  AttentionPlanScope& operator=(const AttentionPlanScope&) = delete;

  /// Forwards and backwards that ran on wgmma.
  int uses() const { return uses_; }
  /// The plan in force, or nullptr. Counts a use.
  static const AttentionPlan* take() {
    if (current_ == nullptr) return nullptr;
    ++current_->uses_;
    return &current_->plan_;
  }

 private:
  static inline thread_local AttentionPlanScope* current_ = nullptr;
  AttentionPlan plan_;
  AttentionPlanScope* before_;
  int uses_ = 0;
};

/// The plan for `keys` keys per head; plain: no dropout, causal mask, lengths or shared keys. It depends on sizes
/// alone, so that results are the same everywhere. Padding keys cost as much as others, and every step adds its
/// barriers and its softmax's start.
inline AttentionPlan attention_plan(int64_t keys, int64_t channels, bool plain) {
  if (const AttentionPlan* const forced = AttentionPlanScope::take()) return *forced;
  if (plain && channels <= 64 && keys > 128 && keys <= kOneStepKeys) return {kOneStepKeys};
  // SM cycles for 128 queries: GEMMs at 4096 flops per cycle, and an overhead per step.
  const auto cycles = [&](int64_t step) {
    return (keys + step - 1) / step * (4 * 128 * step * (channels <= 64 ? 64 : 128) / 4096 + 250);
  };
  return {cycles(64) < cycles(128) ? 64 : 128};
}

/// Whether one kernel computes dq, dk and dv (attention_backward_joint_wgmma.cuh); plain: all three are asked for,
/// without dropout and causal mask. A block walks over a head's queries alone, so that many queries would leave a GPU
/// idle where heads are few.
inline bool attention_backward_is_joint(int64_t queries, int64_t keys, int64_t channels, bool plain) {
  const AttentionPlan* const forced = AttentionPlanScope::take();
  if (!plain || channels > 64 || keys > 256) return false;
  return forced ? forced->joint : queries <= 512 && !takes(Variant::two_backward_kernels);
}

}  // namespace weft::kernels
