// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "kernels/allocator.h"
#include "kernels/binary.h"
#include "kernels/engines/cuda_stream.h"

namespace weft::kernels::vendor {
namespace {

constexpr int kMostVariants = 4;
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

// The names of these came with cuDNN 9.8.
constexpr auto kHeuristicProperties = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanProperties = static_cast<cudnnBackendAttributeName_t>(407);

std::vector<cudnnBackendNumericalNote_t> notes_of(const CudnnLibrary& library, const CudnnDescriptor& configuration) {
  const CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  cudnnBackendDescriptor_t raw = engine.raw();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  std::vector<cudnnBackendNumericalNote_t> notes(32);
  notes.resize(static_cast<size_t>(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                              static_cast<int64_t>(notes.size()), notes.data())));
  return notes;
}

}  // namespace

bool keeps_contract(const std::vector<cudnnBackendNumericalNote_t>& notes, DType dtype, bool nondeterministic,
                    bool tf32) {
  return std::ranges::none_of(notes, [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return dtype == DType::f32 && !tf32;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return !nondeterministic;
      case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
        return false;
      default:  // fewer bits in products or sums, Winograd, FFT, and what is not known
        return true;
    }
  });
}

bool nondeterministic_engines_allowed() {
  static const bool allowed = [] {
    const char* const text = std::getenv("WEFT_VENDOR_NONDETERMINISTIC");
    return text && *text && std::string_view(text) != "0";
  }();
  return allowed;
}

CudnnPlan::CudnnPlan(const CudnnTarget& target, const Conv2dCall& call)
    : target_(target), dtype_(call.x.dtype), adds_bias_(call.bias && call.direction == Direction::forward) {
  const auto find = [&] {
    graph_ = std::make_unique<CudnnGraph>(target_, call, adds_bias_);
    find_engines(CUDNN_HEUR_MODE_A, *graph_);
    find_engines(CUDNN_HEUR_MODE_FALLBACK, *graph_);
    return make(1) > 0;
  };
  if (adds_bias_) {
    try {
      if (find()) return;
    } catch (const Error&) {  // the graph itself is refused
    }
    adds_bias_ = false;
  }
  if (!find())
    fail("no engine of cuDNN computes it", last_error_.empty() ? "" : ", the last that was tried says: ", last_error_);
}

void CudnnPlan::find_engines(cudnnBackendHeurMode_t mode, const CudnnGraph& graph) {
  const CudnnLibrary& library = target_.library;
  try {
    CudnnDescriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor()).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    if (target_.properties) heuristic.set(kHeuristicProperties, *target_.properties);
    heuristic.finalize();
    const int64_t count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    std::vector<CudnnDescriptor> configurations;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < count; ++i) {
      configurations.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
      raw.push_back(configurations.back().raw());
    }
    const int64_t got = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data());
    for (int64_t i = 0; i < std::min(count, got); ++i)
      engines_.push_back(std::move(configurations[static_cast<size_t>(i)]));
  } catch (const Error& error) {  // a graph that a mode knows nothing of
    last_error_ = error.what();
  }
}

/// Makes a plan of the next engine that can. False: there is none left.
bool CudnnPlan::next() {
  while (!engines_.empty()) {
    const CudnnDescriptor configuration = std::move(engines_.front());
    engines_.pop_front();
    try {
      if (!keeps_contract(notes_of(target_.library, configuration), dtype_, nondeterministic_engines_allowed(),
                          may_use_tf32(dtype_)))
        continue;
      CudnnDescriptor plan(target_.library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
      if (target_.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target_.handle);
      if (target_.properties) plan.set(kPlanProperties, *target_.properties);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      plan.finalize();
      const auto workspace = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      if (workspace > kMostWorkspace) continue;
      plans_.push_back({std::move(plan), workspace});
      return true;
    } catch (const Error& error) {
      last_error_ = error.what();
    }
  }
  return false;
}

int CudnnPlan::make(int most) {
  while (static_cast<int>(plans_.size()) < most && next()) {
  }
  return std::min(static_cast<int>(plans_.size()), most);
}

void CudnnPlan::run(const Conv2dCall& call, int variant, void* workspace) const {
  std::vector<int64_t> ids{CudnnGraph::kX, CudnnGraph::kW, CudnnGraph::kY};
  std::vector<void*> pointers{call.x.data, call.w.data, call.y.data};
  if (adds_bias_) {
    ids.push_back(CudnnGraph::kBias);
    pointers.push_back(call.bias.data);
  }
  CudnnDescriptor pack(target_.library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  const CudnnDescriptor& plan = plans_[static_cast<size_t>(variant)].descriptor;
  target_.library.check(target_.library.BackendExecute(target_.handle, plan.raw(), pack.raw()), "cudnnBackendExecute");
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
