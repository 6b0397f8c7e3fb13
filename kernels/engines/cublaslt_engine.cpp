// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "kernels/engines/cublaslt.h"
#include "kernels/engines/cublaslt_plan.h"
#include "kernels/engines/cuda_stream.h"
#include "kernels/runtime/kernel_variant.h"

namespace weft::kernels::vendor::cublaslt {
namespace {

/// The plan of a call; its device is the current one from here on.
CublasLtPlan& plan_of(const MatmulCall& call) {
  select_device(call.queue.device.index);
  static std::mutex mutex;
  static auto& devices = *new std::map<int, std::unique_ptr<CublasLtPlans>>;
  CublasLtPlans* plans;
  {
    const std::lock_guard lock(mutex);
    auto& one = devices[call.queue.device.index];
    if (!one) one = std::make_unique<CublasLtPlans>(cublaslt_library());
    plans = one.get();
  }
  return plans->of(call);
}

}  // namespace

const std::string& missing() { return cublaslt_library().missing; }
std::string version() { return missing().empty() ? str("cuBLASLt ", cublaslt_library().GetVersion()) : "no cuBLASLt"; }
bool supports(const MatmulCall& call) { return cublaslt_supports(call); }
int variants(const MatmulCall& call) { return plan_of(call).variants(); }
void matmul(const MatmulCall& call, int variant) {
  plan_of(call).run(call, variant);
  note_kernel_variant("cublaslt");
}

}  // namespace weft::kernels::vendor::cublaslt
