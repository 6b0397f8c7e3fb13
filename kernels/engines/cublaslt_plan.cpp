// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt_plan.h"

#include <algorithm>
#include <optional>

#include "kernels/engines/cuda_stream.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::vendor {
namespace {

constexpr int kMostAlgorithms = 4;
constexpr int kAsked = 8;                        // some may not be usable
constexpr size_t kWorkspace = size_t{32} << 20;  // NVIDIA's recommendation for Hopper

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f64:
      return CUDA_R_64F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_16F;
  }
}

/// The layout of one matrix of a [B, rows, columns] view.
struct Lie {
  bool row_major;
  int64_t pitch;  ///< from row to row, or from column to column
};

/// None where rows (or columns) overlap.
std::optional<Lie> lie_of(const View& view) {
  const int64_t rows = view.sizes[1], columns = view.sizes[2];
  const bool row_major = view.strides[2] == 1 || (view.strides[1] != 1 && columns <= 1);
  const int64_t lines = row_major ? rows : columns, length = row_major ? columns : rows;
  const int64_t pitch = lines > 1 ? view.strides[row_major ? 1 : 2] : length;
  if (pitch < length) return std::nullopt;
  return Lie{row_major, pitch};
}

void set_alignment(const CublasLtLibrary& library, cublasLtMatmulPreference_t preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, const View& view) {
  const auto bytes = static_cast<uint32_t>(alignment_of(view));
  library.MatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof bytes);
}

bool has_epilogue(Activation activation, DType dtype) {
  if (activation == Activation::relu) return dtype != DType::f64;
  return activation == Activation::gelu_tanh && (dtype == DType::bf16 || dtype == DType::f16);
}

cublasLtEpilogue_t epilogue_of(const MatmulCall& call) {
  if (call.row_sums) return CUBLASLT_EPILOGUE_BGRADB;  // "B" of the library is our a; its columns are our rows
  const bool biased = static_cast<bool>(call.bias);
  if (call.activation == Activation::relu) return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (call.activation == Activation::gelu_tanh) return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

bool cublaslt_supports(const MatmulCall& call) {
  const auto& [queue, y, a, b, bias, arguments, activation, residual, row_sums] = call;
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (a.sizes[2] == 0 || y.sizes[0] >= kLimit || !lie_of(a) || !lie_of(b)) return false;
  // f comes before the residual in the contract, and the library's epilogue after it.
  if (activation != Activation::none && (residual || !has_epilogue(activation, y.dtype))) return false;
  if (row_sums && (row_sums.dtype != y.dtype || y.dtype == DType::f64)) return false;
  return !bias || (bias.dtype == y.dtype && y.dtype != DType::f64);
}

CublasLtPlan::CublasLtPlan(const CublasLtLibrary& library, cublasLtHandle_t handle, const MatmulCall& call)
    : library_(library),
      handle_(handle),
      problem_(problem_of(call)),
      is_f64_(call.a.dtype == DType::f64),
      product_(nullptr, library.MatmulDescDestroy),
      first_(nullptr, library.MatrixLayoutDestroy),
      second_(nullptr, library.MatrixLayoutDestroy),
      result_(nullptr, library.MatrixLayoutDestroy) {
  describe(call);
  find_algorithms(call);
}

void CublasLtPlan::check(cublasStatus_t status, const char* function) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("matmul: cublasLt", function, ": ", library_.GetStatusName(status), " (", library_.GetStatusString(status),
       "); ", problem_.text());
}

template <class Value>
void CublasLtPlan::set(cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(library_.MatmulDescSetAttribute(product_.get(), attribute, &value, sizeof value), "MatmulDescSetAttribute");
}

/// `rows` and `columns` as the library sees them: column-major.
CublasLtPlan::Layout CublasLtPlan::make_layout(DType dtype, int64_t rows, int64_t columns, int64_t pitch,
                                               int64_t batches, int64_t batch_stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check(library_.MatrixLayoutCreate(&made, data_type(dtype), static_cast<uint64_t>(rows),
                                    static_cast<uint64_t>(columns), pitch),
        "MatrixLayoutCreate");
  Layout layout(made, library_.MatrixLayoutDestroy);
  const auto set_one = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    check(library_.MatrixLayoutSetAttribute(made, attribute, &value, sizeof value), "MatrixLayoutSetAttribute");
  };
  set_one(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batches));
  set_one(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
  return layout;
}

CublasLtPlan::Layout CublasLtPlan::make_factor(const View& view, cublasLtMatmulDescAttributes_t transpose) {
  const Lie lie = *lie_of(view);
  set(transpose, static_cast<int32_t>(lie.row_major ? CUBLAS_OP_N : CUBLAS_OP_T));
  const int64_t rows = view.sizes[1], columns = view.sizes[2];
  return make_layout(view.dtype, lie.row_major ? columns : rows, lie.row_major ? rows : columns, lie.pitch,
                     view.sizes[0], view.strides[0]);
}

void CublasLtPlan::describe(const MatmulCall& call) {
  const auto& [queue, y, a, b, bias, arguments, activation, residual, row_sums] = call;
  cublasLtMatmulDesc_t made = nullptr;
  check(library_.MatmulDescCreate(&made,
                                  is_f64_                      ? CUBLAS_COMPUTE_64F
                                  : may_use_tf32(call.a.dtype) ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                               : CUBLAS_COMPUTE_32F,
                                  is_f64_ ? CUDA_R_64F : CUDA_R_32F),
        "MatmulDescCreate");
  product_.reset(made);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue_of(call)));
  if (const View& vector = row_sums ? row_sums : bias) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(data_type(vector.dtype)));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vector.data));
  }
  first_ = make_factor(b, CUBLASLT_MATMUL_DESC_TRANSA);
  second_ = make_factor(a, CUBLASLT_MATMUL_DESC_TRANSB);
  const int64_t M = y.sizes[1], N = y.sizes[2];
  result_ = make_layout(y.dtype, N, M, M > 1 ? y.strides[1] : N, y.sizes[0], y.strides[0]);
}

void CublasLtPlan::find_algorithms(const MatmulCall& call) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(library_.MatmulPreferenceCreate(&preference), "MatmulPreferenceCreate");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(library_.MatmulPreferenceDestroy)> owner(
      preference, library_.MatmulPreferenceDestroy);
  library_.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                        sizeof kWorkspace);
  // Shares of a split depth are added in the compute type: the contract sums in f32.
  const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  library_.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                                        sizeof reduction);
  set_alignment(library_, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, call.b);
  set_alignment(library_, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, call.a);
  set_alignment(library_, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                call.residual ? call.residual : call.y);
  set_alignment(library_, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, call.y);
  cublasLtMatmulHeuristicResult_t results[kAsked] = {};
  int count = 0;
  check(library_.MatmulAlgoGetHeuristic(handle_, product_.get(), first_.get(), second_.get(), result_.get(),
                                        result_.get(), preference, kAsked, results, &count),
        "MatmulAlgoGetHeuristic");
  for (int i = 0; i < std::min(count, kAsked) && variants() < kMostAlgorithms; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= kWorkspace)
      algorithms_.push_back(results[i]);
  WEFT_CHECK(!algorithms_.empty(), "matmul: cublasLtMatmulAlgoGetHeuristic: has no algorithm for ", problem_.text());
}

void CublasLtPlan::run(const MatmulCall& call, int variant) {
  WEFT_CHECK(variant >= 0 && variant < variants(), "matmul: cuBLASLt offers ", variants(), " algorithms, not number ",
             variant, ", for ", problem_.text());
  const auto& algorithm = algorithms_[static_cast<size_t>(variant)];
  std::optional<Workspace> workspace;
  if (algorithm.workspaceSize) workspace.emplace(call.queue, algorithm.workspaceSize, "cublaslt_matmul");
  const float alpha = static_cast<float>(call.arguments.alpha);
  const View& added = call.residual ? call.residual : call.y;
  const float beta = call.residual || call.arguments.grad == Grad::accumulate ? 1 : 0;
  const double alpha_f64 = call.arguments.alpha, beta_f64 = beta;
  const void* const scale = is_f64_ ? static_cast<const void*>(&alpha_f64) : &alpha;
  const void* const keep = is_f64_ ? static_cast<const void*>(&beta_f64) : &beta;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (const View& vector = call.row_sums ? call.row_sums : call.bias) {
    lock.lock();
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vector.data));
  }
  check(library_.Matmul(handle_, product_.get(), scale, call.b.data, first_.get(), call.a.data, second_.get(), keep,
                        added.data, result_.get(), call.y.data, result_.get(), &algorithm.algo,
                        workspace ? workspace->data() : nullptr, algorithm.workspaceSize,
                        static_cast<cudaStream_t>(call.queue.stream)),
        "Matmul");
}

CublasLtPlan& CublasLtPlans::of(const MatmulCall& call) {
  const Problem problem = problem_of(call);
  const std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(problem); found != plans_.end()) return *found->second;
  const UnsafeCallsAllowed guard;
  if (!handle_) {
    const cublasStatus_t status = library_.Create(&handle_);
    WEFT_CHECK(status == CUBLAS_STATUS_SUCCESS, "matmul: cublasLtCreate: ", library_.GetStatusName(status), " (",
               library_.GetStatusString(status), ')');
  }
  return *plans_.emplace(problem, std::make_unique<CublasLtPlan>(library_, handle_, call)).first->second;
}

}  // namespace weft::kernels::vendor
