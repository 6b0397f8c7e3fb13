// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernels/engines/calls.h"
#include "kernels/engines/cudnn_engines.h"

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
  std::vector<CudnnDescriptor> parts_;  ///< what the graph refers to
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
  /// Is the bias added by the plan itself? Else by a kernel of ours behind it.
  bool adds_bias() const { return adds_bias_; }
  /// Enqueues a plan that was made on the stream of the target's handle.
  void run(const Conv2dCall& call, int variant, void* workspace) const;

 private:
  const CudnnTarget target_;
  CudnnEngines engines_;
  bool adds_bias_;
  std::unique_ptr<CudnnGraph> graph_;
};

/// The plans of one device, made when they are first needed. Thread-safe.
class CudnnPlans {
 public:
  explicit CudnnPlans(const CudnnLibrary& library) : library_(library) {}

  int variants(const Conv2dCall& call);
  void run(const Conv2dCall& call, int variant);

 private:
  CudnnPlan& of(const Conv2dCall& call);

  const CudnnLibrary& library_;
  std::mutex mutex_;  ///< a handle belongs to one thread at a time, and so does its stream
  cudnnHandle_t handle_ = nullptr;
  std::unordered_map<Problem, std::unique_ptr<CudnnPlan>, ProblemHash> plans_;
};

}  // namespace weft::kernels::vendor
