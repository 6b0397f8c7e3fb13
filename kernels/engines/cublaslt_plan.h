// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/engines/calls.h"
#include "kernels/engines/cublaslt_library.h"

namespace weft::kernels::vendor {

/// Can cuBLASLt compute the call? Not: a depth of 0; rows that overlap (an expanded or windowed view); a bias of
/// another dtype than y; GELU with erf (the library's is the one with tanh: NVIDIA/TensorRT-LLM#17693), or of 32 bits,
/// whose tanh the library might round; an activation with a residual; f64 with bias, activation or row sums; row sums
/// of another dtype than y; 2^31 batches and more.
bool cublaslt_supports(const MatmulCall& call);

/// One problem, ready to be enqueued: its layouts and the heuristic's algorithms.
///
/// cuBLASLt's matrices are column-major. A row-major y [M, N] is a column-major [N, M], so the product is asked for
/// with its factors exchanged: y^T = b^T a^T. A row-major factor is then used unchanged, a column-major factor
/// transposed.
class CublasLtPlan {
 public:
  CublasLtPlan(const CublasLtLibrary& library, cublasLtHandle_t handle, const MatmulCall& call);
  CublasLtPlan(const CublasLtPlan&) = delete;
  CublasLtPlan& operator=(const CublasLtPlan&) = delete;

  int variants() const { return static_cast<int>(algorithms_.size()); }
  /// Enqueues the call, which must be of the same problem.
  void run(const MatmulCall& call, int variant);

 private:
  using Product = std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(CublasLtLibrary::MatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(CublasLtLibrary::MatrixLayoutDestroy)>;

  void describe(const MatmulCall& call);
  Layout make_layout(DType dtype, int64_t rows, int64_t columns, int64_t pitch, int64_t batches, int64_t batch_stride);
  Layout make_factor(const View& view, cublasLtMatmulDescAttributes_t transpose);
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value);
  void find_algorithms(const MatmulCall& call);
  void check(cublasStatus_t status, const char* function) const;

  const CublasLtLibrary& library_;
  const cublasLtHandle_t handle_;
  const Problem problem_;
  const bool is_f64_;
  std::mutex mutex_;  ///< the pointer to the bias, or to the row sums, is part of the descriptor
  Product product_;
  Layout first_, second_, result_;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;
};

/// The plans of one device, made when they are first needed. Thread-safe.
class CublasLtPlans {
 public:
  /// `library` outlives it; a null handle is made by the first plan.
  explicit CublasLtPlans(const CublasLtLibrary& library) : library_(library) {}

  CublasLtPlan& of(const MatmulCall& call);

 private:
  const CublasLtLibrary& library_;
  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::unordered_map<Problem, std::unique_ptr<CublasLtPlan>, ProblemHash> plans_;
};

}  // namespace weft::kernels::vendor
