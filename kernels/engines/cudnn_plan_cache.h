// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cudnn_engines.h"
#include "kernels/engines/problem.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::vendor {

/// The plans of one device for an op's calls, each made when its problem is first met. Thread-safe. Errors name the op
/// and the problem.
///
/// Plan(CudnnTarget, call) computes one problem: make(most) returns the number of plans, workspace(variant) the bytes
/// that a run needs. run(call, variant, workspace) enqueues the plan on the stream of the target's handle.
template <class Plan, class Call>
class CudnnPlanCache {
 public:
  explicit CudnnPlanCache(const CudnnLibrary& library) : library_(library) {}

  /// How many plans a call may choose from.
  int variants(const Call& call) {
    return alone(call, [&](const Problem& problem) {
      const UnsafeCallsAllowed guard;
      return of(problem, call).make(kMostVariants);
    });
  }

  /// The answer of `question` about the call's plan.
  template <class Question>
  auto ask(const Call& call, const Question& question) {
    return alone(call, [&](const Problem& problem) { return question(of(problem, call)); });
  }

  void run(const Call& call, int variant) {
    alone(call, [&](const Problem& problem) {
      Plan& plan = of(problem, call);
      if (variant > 0) {  // an answer of the tuning cache may ask for one that this process has not made yet
        const UnsafeCallsAllowed guard;
        WEFT_CHECK(plan.make(variant + 1) > variant, "cuDNN offers no plan number ", variant);
      }
      std::optional<Workspace> workspace;
      if (const int64_t bytes = plan.workspace(variant))
        workspace.emplace(call.queue, static_cast<size_t>(bytes), problem.op());
      library_.check(library_.SetStream(handle_, static_cast<cudaStream_t>(call.queue.stream)), "cudnnSetStream");
      plan.run(call, variant, workspace ? workspace->data() : nullptr);
    });
  }

 private:
  static constexpr int kMostVariants = 4;

  template <class Body>
  auto alone(const Call& call, Body&& body) {
    const Problem problem = problem_of(call);
    try {
      const std::lock_guard lock(mutex_);
      return body(problem);
    } catch (const OutOfMemory&) {
      throw;  // reports the memory that it wanted
    } catch (const Error& error) {
      fail(problem.op(), ": ", error.what(), "; ", problem.text());
    }
  }

  Plan& of(const Problem& problem, const Call& call) {
    if (const auto found = plans_.find(problem); found != plans_.end()) return *found->second;
    const UnsafeCallsAllowed guard;
    if (!handle_) {
      library_.check(library_.Create(&handle_), "cudnnCreate");
      size_t free = 0, total = 0;
      if (cudaMemGetInfo(&free, &total) == cudaSuccess)
        most_workspace_ = std::max(kUsualWorkspace, static_cast<int64_t>(total / 4));
      else
        cudaGetLastError();  // the next call starts clean
    }
    const CudnnTarget target{library_, handle_, nullptr, most_workspace_};
    return *plans_.emplace(problem, std::make_unique<Plan>(target, call)).first->second;
  }

  const CudnnLibrary& library_;
  std::mutex mutex_;  ///< a handle belongs to one thread at a time, and so does its stream
  cudnnHandle_t handle_ = nullptr;
  int64_t most_workspace_ = kUsualWorkspace;
  std::unordered_map<Problem, std::unique_ptr<Plan>, ProblemHash> plans_;
};

}  // namespace weft::kernels::vendor
