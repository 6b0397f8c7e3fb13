// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_engines.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "kernels/engines/calls.h"
#include "kernels/error.h"

namespace weft::kernels::vendor {
namespace {

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

cudnnDataType_t cudnn_data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_HALF;
  }
}

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
      default:  // fewer bits in products or sums, Winograd, FFT, and unknown notes
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

void CudnnEngines::find(const CudnnDescriptor& graph) {
  find(graph, CUDNN_HEUR_MODE_A);
  find(graph, CUDNN_HEUR_MODE_FALLBACK);
}

void CudnnEngines::find(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  const CudnnLibrary& library = target_.library;
  try {
    CudnnDescriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
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
  } catch (const Error& error) {  // a graph that the mode does not know
    last_error_ = error.what();
  }
}

/// Makes a plan of the next engine that can. False: there is none left.
bool CudnnEngines::next() {
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
      if (workspace > kUsualWorkspace) {
        if (!large_ || workspace < large_->workspace) large_.emplace(Plan{std::move(plan), workspace});
        continue;
      }
      plans_.push_back({std::move(plan), workspace});
      return true;
    } catch (const Error& error) {
      last_error_ = error.what();
    }
  }
  if (!plans_.empty() || !large_ || large_->workspace > target_.most_workspace) return false;
  plans_.push_back(std::move(*large_));
  large_.reset();
  return true;
}

int CudnnEngines::make(int most) {
  while (static_cast<int>(plans_.size()) < most && next()) {
  }
  return std::min(static_cast<int>(plans_.size()), most);
}

void CudnnEngines::run(int variant, const CudnnPointers& pointers, void* workspace) const {
  CudnnDescriptor pack(target_.library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, pointers.ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers.pointers)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  const CudnnDescriptor& plan = plans_[static_cast<size_t>(variant)].descriptor;
  target_.library.check(target_.library.BackendExecute(target_.handle, plan.raw(), pack.raw()), "cudnnBackendExecute");
}

void CudnnEngines::fail_without() const {
  const auto mebibytes = [](int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; };
  if (large_)
    fail("no engine of cuDNN computes it with a workspace of at most ", mebibytes(target_.most_workspace),
         " MiB, a quarter of the GPU's memory: one wants ", mebibytes(large_->workspace), " MiB");
  fail("no engine of cuDNN computes it", last_error_.empty() ? "" : ", the last that was tried says: ", last_error_);
}

}  // namespace weft::kernels::vendor
