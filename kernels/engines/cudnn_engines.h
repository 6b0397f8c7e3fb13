// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/engines/cudnn_descriptor.h"

namespace weft::kernels::vendor {

/// Bytes that a plan may want while there is another one. Its memory is the allocator's, and is free again after the
/// run.
constexpr int64_t kUsualWorkspace = int64_t{1} << 30;

/// The target of plans: a GPU by its handle, or an absent GPU by its properties (cuDNN 9.8). Plans for the latter
/// cannot run.
struct CudnnTarget {
  const CudnnLibrary& library;
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
  /// Bytes of the largest workspace for what no engine computes in kUsualWorkspace.
  int64_t most_workspace = kUsualWorkspace;
};

/// May an engine with these numerical notes compute the contract's result? Sums are in f32 and, for f32, so are the
/// products unless `tf32` is allowed; no transform (Winograd, FFT) that trades accuracy; the same bits in every run
/// unless `nondeterministic` ones are allowed.
bool keeps_contract(const std::vector<cudnnBackendNumericalNote_t>& notes, DType dtype, bool nondeterministic,
                    bool tf32 = false);

/// WEFT_VENDOR_NONDETERMINISTIC=1: engines whose sums have no fixed order may run, too.
bool nondeterministic_engines_allowed();

/// cuDNN's name of f32, bf16 or f16.
cudnnDataType_t cudnn_data_type(DType dtype);

/// The memory of a graph's tensors in a run, by their ids.
struct CudnnPointers {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;

  void add(int64_t id, const void* pointer) {
    ids.push_back(id);
    pointers.push_back(const_cast<void*>(pointer));
  }
};

/// The engines that the heuristic likes for an operation graph (mode A, then the fallbacks), each made into a plan when
/// it is asked for. Engines that break the contract or whose plan cannot be made are skipped. So are plans of a large
/// workspace, unless there is no other; then the smallest is taken.
class CudnnEngines {
 public:
  /// `dtype`: of the factors.
  CudnnEngines(const CudnnTarget& target, DType dtype) : target_(target), dtype_(dtype) {}

  /// Adds those of a graph, which must live on.
  void find(const CudnnDescriptor& graph);
  /// How many plans there are, `most` at most.
  int make(int most);
  /// The workspace of a plan in bytes.
  int64_t workspace(int variant) const { return plans_[static_cast<size_t>(variant)].workspace; }
  /// Enqueues a plan that was made on the stream of the target's handle.
  void run(int variant, const CudnnPointers& pointers, void* workspace) const;
  /// Throws: no engine computes the call, with the workspace that an engine would need, or the last error.
  [[noreturn]] void fail_without() const;

 private:
  struct Plan {
    CudnnDescriptor descriptor;
    int64_t workspace;
  };
  void find(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode);
  bool next();

  const CudnnTarget target_;
  const DType dtype_;
  std::deque<CudnnDescriptor> engines_;  ///< configurations not yet tried
  std::vector<Plan> plans_;
  std::optional<Plan> large_;  ///< the one of the smallest workspace above kUsualWorkspace
  std::string last_error_;
};

}  // namespace weft::kernels::vendor
