// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/engines/cublaslt_library.h"
#include "kernels/half.h"
#include "kernels/runtime/queue.h"
#include "kernels/runtime/f32_products.h"

// cuBLASLt without a GPU: its real layouts and descriptors (they need no device), with two functions of ours. The
// heuristic offers the test's algorithms. The product reads the descriptors back and computes their meaning by cuBLAS's
// documentation: D = alpha op(A) op(B) + beta C (+ bias), all column-major.

namespace weft::tests::cublaslt_without_gpu {  // cuDNN has a script of its own

using namespace kernels;          // NOLINT
using namespace kernels::vendor;  // NOLINT

inline const CublasLtLibrary& real() { return cublaslt_library(); }

template <class T>
T product_attribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute) {
  T value{};
  size_t written = 0;
  EXPECT_EQ(real().MatmulDescGetAttribute(product, attribute, &value, sizeof value, &written), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof value);
  return value;
}

/// A matrix as a layout describes it.
struct Matrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t pitch, stride;
  int32_t batches;
  char* data;

  Matrix(cublasLtMatrixLayout_t layout, const void* memory) : data(static_cast<char*>(const_cast<void*>(memory))) {
    get(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type);
    get(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
    get(layout, CUBLASLT_MATRIX_LAYOUT_COLS, columns);
    get(layout, CUBLASLT_MATRIX_LAYOUT_LD, pitch);
    get(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batches);
    get(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
    EXPECT_GE(pitch, static_cast<int64_t>(rows));  // cuBLAS wants columns that do not overlap
  }

  int64_t at(int64_t batch, int64_t row, int64_t column) const { return batch * stride + column * pitch + row; }
  double load(int64_t place) const {
    switch (type) {
      case CUDA_R_32F:
        return reinterpret_cast<const float*>(data)[place];
      case CUDA_R_64F:
        return reinterpret_cast<const double*>(data)[place];
      case CUDA_R_16BF:
        return static_cast<float>(reinterpret_cast<const bf16*>(data)[place]);
      default:
        return static_cast<float>(reinterpret_cast<const f16*>(data)[place]);
    }
  }
  void store(int64_t place, double value) const {
    switch (type) {
      case CUDA_R_32F:
        reinterpret_cast<float*>(data)[place] = static_cast<float>(value);
        break;
      case CUDA_R_64F:
        reinterpret_cast<double*>(data)[place] = value;
        break;
      case CUDA_R_16BF:
        reinterpret_cast<bf16*>(data)[place] = bf16(static_cast<float>(value));
        break;
      default:
        reinterpret_cast<f16*>(data)[place] = f16(static_cast<float>(value));
    }
  }

 private:
  template <class T>
  static void get(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T& value) {
    size_t written = 0;
    EXPECT_EQ(real().MatrixLayoutGetAttribute(layout, attribute, &value, sizeof value, &written),
              CUBLAS_STATUS_SUCCESS);
  }
};

/// The next plan's offers from the heuristic, and the arguments of the products.
struct Script {
  std::vector<cublasLtMatmulHeuristicResult_t> offers;
  cublasStatus_t heuristic = CUBLAS_STATUS_SUCCESS, product = CUBLAS_STATUS_SUCCESS;
  size_t workspace_asked = 0;   ///< the preference's limit
  uint32_t alignments[3] = {};  ///< alignments of the library's A, B, D
  uint32_t reduction = 0;
  uint64_t algorithm = 0;  ///< algorithm of the last product
  int32_t compute_type = 0;
  size_t workspace = 0;
  bool workspace_given = false;
};
inline Script script;

/// The heuristic.
inline cublasStatus_t offer(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                            cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference,
                            int asked, cublasLtMatmulHeuristicResult_t results[], int* count) {
  const auto get = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto& value) {
    size_t written = 0;
    EXPECT_EQ(real().MatmulPreferenceGetAttribute(preference, attribute, &value, sizeof value, &written),
              CUBLAS_STATUS_SUCCESS);
  };
  get(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, script.workspace_asked);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, script.alignments[0]);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, script.alignments[1]);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, script.alignments[2]);
  get(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, script.reduction);
  *count = std::min(asked, static_cast<int>(script.offers.size()));
  std::copy_n(script.offers.begin(), *count, results);
  return script.heuristic;
}

/// The product.
inline cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a_data,
                               cublasLtMatrixLayout_t a_layout, const void* b_data, cublasLtMatrixLayout_t b_layout,
                               const void* beta, const void* c_data, cublasLtMatrixLayout_t c_layout, void* d_data,
                               cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                               size_t bytes, cudaStream_t) {
  script.algorithm = algorithm->data[0];
  script.workspace = bytes;
  script.workspace_given = workspace != nullptr;
  const Matrix A(a_layout, a_data), B(b_layout, b_data), C(c_layout, c_data), D(d_layout, d_data);
  const bool f64 = D.type == CUDA_R_64F;
  script.compute_type = product_attribute<int32_t>(product, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  EXPECT_EQ(script.compute_type, f64 ? CUBLAS_COMPUTE_64F
                                 : kernels::allow_tf32() && Matrix(a_layout, a_data).type == CUDA_R_32F
                                     ? CUBLAS_COMPUTE_32F_FAST_TF32
                                     : CUBLAS_COMPUTE_32F);
  EXPECT_EQ(product_attribute<int32_t>(product, CUBLASLT_MATMUL_DESC_SCALE_TYPE), f64 ? CUDA_R_64F : CUDA_R_32F);
  const auto scalar = [&](const void* p) {
    return f64 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  const bool ta = product_attribute<int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool tb = product_attribute<int32_t>(product, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const auto epilogue = product_attribute<uint32_t>(product, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const void* const bias = product_attribute<const void*>(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const bool relu = epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const bool gelu = epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
  const bool with_bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
                         epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
  const bool sums_columns = epilogue == CUBLASLT_EPILOGUE_BGRADB;
  EXPECT_TRUE(relu || gelu || with_bias || sums_columns || epilogue == CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_TRUE(!(with_bias || sums_columns) || bias);
  if (with_bias || sums_columns) {
    EXPECT_EQ(product_attribute<int32_t>(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), D.type);
  }
  const auto m = static_cast<int64_t>(D.rows), n = static_cast<int64_t>(D.columns);
  const auto k = static_cast<int64_t>(ta ? A.rows : A.columns);
  EXPECT_EQ(static_cast<int64_t>(ta ? A.columns : A.rows), m);
  EXPECT_EQ(static_cast<int64_t>(tb ? B.columns : B.rows), k);
  EXPECT_EQ(static_cast<int64_t>(tb ? B.rows : B.columns), n);
  EXPECT_TRUE(A.batches == D.batches && B.batches == D.batches);
  for (int64_t batch = 0; batch < D.batches; ++batch)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum +=
              A.load(ta ? A.at(batch, p, i) : A.at(batch, i, p)) * B.load(tb ? B.at(batch, j, p) : B.at(batch, p, j));
        double value = scalar(alpha) * sum;
        if (scalar(beta) != 0) value += scalar(beta) * C.load(C.at(batch, i, j));
        if (with_bias) {
          Matrix row = D;
          row.data = static_cast<char*>(const_cast<void*>(bias));
          value += row.load(i);
        }
        if (relu) value = std::max(value, 0.0);
        if (gelu) value = kernels::unary_value<kernels::Unary::gelu_tanh>(value, 0.0, 0.0);
        D.store(D.at(batch, i, j), value);
      }
  if (sums_columns) {  // over k, one for each column of D
    EXPECT_EQ(D.batches, 1);
    Matrix to = D;
    to.data = static_cast<char*>(const_cast<void*>(bias));
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += B.load(tb ? B.at(0, j, p) : B.at(0, p, j));
      to.store(j, sum);
    }
  }
  return script.product;
}

class CublasLt : public testing::Test {
 protected:
  CublasLt() {
    if (!real().missing.empty()) return;
    library = real();
    library.Create = [](cublasLtHandle_t* handle) {
      *handle = reinterpret_cast<cublasLtHandle_t>(8);
      return CUBLAS_STATUS_SUCCESS;
    };
    library.MatmulAlgoGetHeuristic = offer;
    library.Matmul = multiply;
    script = {};
    script.offers = {an_offer(1)};
  }
  void SetUp() override {
    if (!real().missing.empty()) GTEST_SKIP() << "needs cuBLASLt: " << real().missing;
  }

  static cublasLtMatmulHeuristicResult_t an_offer(uint64_t number, size_t workspace = 0,
                                                  cublasStatus_t state = CUBLAS_STATUS_SUCCESS) {
    cublasLtMatmulHeuristicResult_t result{};
    result.algo.data[0] = number;
    result.workspaceSize = workspace;
    result.state = state;
    return result;
  }

  CublasLtLibrary library;
  const Queue queue{};  // the functions above run at once, in host memory
};

}  // namespace weft::tests::cublaslt_without_gpu
