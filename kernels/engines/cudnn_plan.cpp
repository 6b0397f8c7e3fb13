// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan.h"

#include "kernels/binary.h"

namespace weft::kernels::vendor {

CudnnPlan::CudnnPlan(const CudnnTarget& target, const Conv2dCall& call)
    : target_(target), engines_(target, call.x.dtype), adds_bias_(call.bias && call.direction == Direction::forward) {
  const auto find = [&] {
    graph_ = std::make_unique<CudnnGraph>(target_, call, adds_bias_);
    engines_.find(graph_->descriptor());
    return make(1) > 0;
  };
  if (adds_bias_) {
    try {
      if (find()) return;
    } catch (const Error&) {  // the graph itself is refused
    }
    adds_bias_ = false;
  }
  if (!find()) engines_.fail_without();
}

void CudnnPlan::run(const Conv2dCall& call, int variant, void* workspace) const {
  CudnnPointers pointers;
  pointers.add(CudnnGraph::kX, call.x.data);
  pointers.add(CudnnGraph::kW, call.w.data);
  pointers.add(CudnnGraph::kY, call.y.data);
  if (adds_bias_) pointers.add(CudnnGraph::kBias, call.bias.data);
  engines_.run(variant, pointers, workspace);
  if (!call.bias || adds_bias_) return;
  View bias = call.y;
  bias.data = call.bias.data;
  bias.dtype = call.bias.dtype;
  bias.strides = {0, 0, 0, 1};
  binary_forward(call.queue, Binary::add, call.y, call.y, bias, 1);
}

}  // namespace weft::kernels::vendor
