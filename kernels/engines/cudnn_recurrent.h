// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <type_traits>

#include "kernels/engines/cudnn_plan_cache.h"
#include "kernels/engines/recurrent.h"

namespace weft::kernels::vendor {

/// Why cuDNN cannot compute the call, whatever the GPU; empty where it can.
std::string cudnn_refusal(const RecurrentCall& call);

/// One problem by cudnnRNNForward, or by cudnnRNNBackwardData_v8 and cudnnRNNBackwardWeights_v8. The library keeps a
/// layer's weights in one buffer, so each run copies ours there, and their gradients from there.
class CudnnRecurrentPlan {
 public:
  CudnnRecurrentPlan(const CudnnTarget& target, const RecurrentCall& call);

  /// The only algorithm whose result does not depend on the GPU's other work.
  static int make(int) { return 1; }
  int64_t workspace(int) const;
  int64_t reserve() const { return static_cast<int64_t>(reserve_bytes_); }
  void run(const RecurrentCall& call, int variant, void* workspace) const;

 private:
  template <class Raw>
  using Owned = std::unique_ptr<std::remove_pointer_t<Raw>, cudnnStatus_t (*)(Raw)>;
  template <class Raw>
  Owned<Raw> make_descriptor(cudnnStatus_t (*create)(Raw*), cudnnStatus_t (*destroy)(Raw)) const {
    Raw raw = nullptr;
    library_.check(create(&raw), "creating a descriptor of cuDNN's RNN");
    return {raw, destroy};
  }
  std::array<View, 4> weights_in(void* buffer, const RecurrentCall& call) const;

  const CudnnLibrary& library_;
  const cudnnHandle_t handle_;
  const bool backward_;
  Owned<cudnnRNNDescriptor_t> rnn_;
  Owned<cudnnRNNDataDescriptor_t> x_, y_;
  Owned<cudnnTensorDescriptor_t> state_, matrix_, bias_;  // the last two: where weights_in() is told sizes
  size_t weight_bytes_ = 0, work_bytes_ = 0, reserve_bytes_ = 0;
};

using CudnnRecurrentPlans = CudnnPlanCache<CudnnRecurrentPlan, RecurrentCall>;

}  // namespace weft::kernels::vendor
