// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan.h"

#include "kernels/allocator.h"
#include "kernels/binary.h"
#include "kernels/engines/cuda_stream.h"

namespace weft::kernels::vendor {
namespace {

constexpr int kMostVariants = 4;

}  // namespace

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
}

CudnnPlan& CudnnPlans::of(const Conv2dCall& call) {
  const Problem problem = problem_of(call);
  if (const auto found = plans_.find(problem); found != plans_.end()) return *found->second;
  const UnsafeCallsAllowed guard;
  if (!handle_) library_.check(library_.Create(&handle_), "cudnnCreate");
  return *plans_.emplace(problem, std::make_unique<CudnnPlan>(CudnnTarget{library_, handle_}, call)).first->second;
}

/// Errors of the library, with the op and the problem.
template <class Body>
static auto named(const Conv2dCall& call, Body&& body) {
  try {
    return body();
  } catch (const OutOfMemory&) {
    throw;  // says what it wanted
  } catch (const Error& error) {
    fail(op_of(call.direction), ": ", error.what(), "; ", problem_of(call).text());
  }
}

int CudnnPlans::variants(const Conv2dCall& call) {
  return named(call, [&] {
    const std::lock_guard lock(mutex_);
    const UnsafeCallsAllowed guard;
    return of(call).make(kMostVariants);
  });
}

void CudnnPlans::run(const Conv2dCall& call, int variant) {
  named(call, [&] {
    const std::lock_guard lock(mutex_);
    CudnnPlan& plan = of(call);
    if (variant > 0) {  // an answer of the tuning cache may ask for one that this process has not made yet
      const UnsafeCallsAllowed guard;
      WEFT_CHECK(plan.make(variant + 1) > variant, "cuDNN offers no plan number ", variant);
    }
    std::optional<Workspace> workspace;
    if (plan.workspace(variant))
      workspace.emplace(call.queue, static_cast<size_t>(plan.workspace(variant)), op_of(call.direction));
    library_.check(library_.SetStream(handle_, static_cast<cudaStream_t>(call.queue.stream)), "cudnnSetStream");
    plan.run(call, variant, workspace ? workspace->data() : nullptr);
    if (call.bias && !plan.adds_bias()) {
      View bias = call.y;
      bias.data = call.bias.data;
      bias.dtype = call.bias.dtype;
      bias.strides = {0, 0, 0, 1};
      binary_forward(call.queue, Binary::add, call.y, call.y, bias, 1);
    }
  });
}

}  // namespace weft::kernels::vendor
