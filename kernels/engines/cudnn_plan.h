// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "kernels/engines/calls.h"
#include "kernels/engines/cudnn_plan_cache.h"

namespace weft::kernels::vendor {

/// Not: f64 (no engine of the graph API), and a weight gradient in f32 of 16-bit factors (none in cuDNN 9.19).
inline bool cudnn_supports(const Conv2dCall& call) {
  return call.x.dtype != DType::f64 && call.w.dtype == call.x.dtype;
}

/// The operation graph of one problem: convolution [+ bias]. NHWC and OHWI are told by strides.
class CudnnGraph {
 public:
  CudnnGraph(const CudnnTarget& target, const Conv2dCall& call, bool with_bias);
  const CudnnDescriptor& descriptor() const { return graph_; }
  enum Id : int64_t { kX = 1, kW, kY, kBias, kSums };

 private:
  CudnnDescriptor tensor(Id id, DType dtype, const std::vector<int64_t>& dims, int64_t alignment,
                         bool is_virtual) const;

  const CudnnTarget& target_;
  std::vector<CudnnDescriptor> parts_;  ///< objects that the graph refers to
  CudnnDescriptor graph_;
};

/// One problem: its graph and the plans that compute it.
class CudnnPlan {
 public:
  /// Errors: no engine can compute it; the sizes contradict each other.
  CudnnPlan(const CudnnTarget& target, const Conv2dCall& call);

  /// How many plans there are, `most` at most.
  int make(int most) { return engines_.make(most); }
  /// The workspace of a plan in bytes.
  int64_t workspace(int variant) const { return engines_.workspace(variant); }
  /// Does the plan itself add the bias? Else a kernel of ours adds it afterwards.
  bool adds_bias() const { return adds_bias_; }
  /// Enqueues a finished plan on the stream of the target's handle, then the bias unless the plan adds it.
  void run(const Conv2dCall& call, int variant, void* workspace) const;

 private:
  const CudnnTarget target_;
  CudnnEngines engines_;
  bool adds_bias_;
  std::unique_ptr<CudnnGraph> graph_;
};

using CudnnPlans = CudnnPlanCache<CudnnPlan, Conv2dCall>;

}  // namespace weft::kernels::vendor
