// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "kernels/engines/calls.h"
#include "kernels/engines/cudnn_operations.h"
#include "kernels/engines/cudnn_plan_cache.h"

namespace weft::kernels::vendor {

/// Why cuDNN's engines cannot compute the call, whatever the GPU; empty where they can.
std::string cudnn_refusal(const AttentionCall& call);

/// The graph that cuDNN knows as flash attention, forward or backward: cuDNN recognises this pattern of products,
/// pointwise operations and reductions. Only q, k, v, y, lse and their gradients are in memory.
class CudnnAttentionGraph {
 public:
  /// ordered: dq is added in a fixed order (cuDNN then stores ds), else with atomics in f32 memory of its own.
  CudnnAttentionGraph(const CudnnTarget& target, const AttentionCall& call, bool ordered);
  const CudnnDescriptor& descriptor() const { return *graph_; }

  enum Id : int64_t {
    kQ = 1,
    kK,
    kV,
    kY,
    kLse,
    kDy,
    kDq,
    kDk,
    kDv,
    kScale,
    kMasked,
    kOne,
    kQueries,
    kKeys,
    kDelta,
    kSums
  };

 private:
  struct Builder;
  CudnnOperations operations_;
  const CudnnDescriptor* graph_;
};

/// One problem: its graph and the plans that compute it.
class CudnnAttentionPlan {
 public:
  /// Errors: no engine can compute it.
  CudnnAttentionPlan(const CudnnTarget& target, const AttentionCall& call);

  int make(int most) { return engines_.make(most); }
  /// Bytes of a run: the plan's own, and the graph's memory beyond the call's tensors.
  int64_t workspace(int variant) const { return own_bytes_ + engines_.workspace(variant); }
  /// Enqueues a finished plan on the stream of the target's handle. One kernel of ours before converts lengths; another
  /// after clears results that no query sees.
  void run(const AttentionCall& call, int variant, void* workspace) const;

 private:
  const CudnnTarget target_;
  CudnnEngines engines_;
  bool ordered_;
  int64_t own_bytes_;
  std::unique_ptr<CudnnAttentionGraph> graph_;
};

using CudnnAttentionPlans = CudnnPlanCache<CudnnAttentionPlan, AttentionCall>;

}  // namespace weft::kernels::vendor
