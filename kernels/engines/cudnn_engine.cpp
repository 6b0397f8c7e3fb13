// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <mutex>

#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cudnn.h"
#include "kernels/engines/cudnn_attention.h"
#include "kernels/engines/cudnn_plan.h"
#include "kernels/engines/cudnn_recurrent.h"
#include "kernels/runtime/kernel_variant.h"

namespace weft::kernels::vendor::cudnn {
namespace {

/// The plans of a queue's device, which is the current one from here on.
template <class Plans>
Plans& plans_on(const Queue& queue) {
  select_device(queue.device.index);
  static std::mutex mutex;
  static auto& devices = *new std::map<int, std::unique_ptr<Plans>>;
  const std::lock_guard lock(mutex);
  auto& one = devices[queue.device.index];
  if (!one) one = std::make_unique<Plans>(cudnn_library());
  return *one;
}

}  // namespace

const std::string& missing() { return cudnn_library().missing; }
std::string version() {
  if (!missing().empty()) return "no cuDNN";
  return str("cuDNN ", cudnn_library().GetVersion(), nondeterministic_engines_allowed() ? " nondeterministic" : "");
}
bool supports(const Conv2dCall& call) { return cudnn_supports(call); }
int variants(const Conv2dCall& call) { return plans_on<CudnnPlans>(call.queue).variants(call); }
void conv2d(const Conv2dCall& call, int variant) {
  plans_on<CudnnPlans>(call.queue).run(call, variant);
  note_kernel_variant("cudnn");
}

std::string refusal(const AttentionCall& call) { return cudnn_refusal(call); }
int variants(const AttentionCall& call) { return plans_on<CudnnAttentionPlans>(call.queue).variants(call); }
void attention(const AttentionCall& call, int variant) {
  plans_on<CudnnAttentionPlans>(call.queue).run(call, variant);
  note_kernel_variant("cudnn");
}

std::string refusal(const RecurrentCall& call) { return cudnn_refusal(call); }
int variants(const RecurrentCall& call) { return plans_on<CudnnRecurrentPlans>(call.queue).variants(call); }
int64_t reserve(const RecurrentCall& call) {
  return plans_on<CudnnRecurrentPlans>(call.queue).ask(call, [](const CudnnRecurrentPlan& plan) {
    return plan.reserve();
  });
}
void recurrent(const RecurrentCall& call) {
  plans_on<CudnnRecurrentPlans>(call.queue).run(call, 0);
  note_kernel_variant("cudnn");
}

}  // namespace weft::kernels::vendor::cudnn
