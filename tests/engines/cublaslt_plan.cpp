// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt_plan.h"

#include <gmock/gmock.h>

#include "kernels/tf32.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// cuBLASLt without a GPU: its real layouts and descriptors (they need no device), with two functions of ours in the
// places of the heuristic, which offers what the test says, and of the product, which reads the descriptors back and
// computes what cuBLAS's documentation says they mean: D = alpha op(A) op(B) + beta C (+ bias), all column-major.

namespace weft::tests {
namespace {

using namespace kernels;          // NOLINT
using namespace kernels::vendor;  // NOLINT

const CublasLtLibrary& real() { return cublaslt_library(); }

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

/// What the heuristic of the next plan offers, and what the products were given.
struct Script {
  std::vector<cublasLtMatmulHeuristicResult_t> offers;
  cublasStatus_t heuristic = CUBLAS_STATUS_SUCCESS, product = CUBLAS_STATUS_SUCCESS;
  size_t workspace_asked = 0;   ///< the preference's limit
  uint32_t alignments[3] = {};  ///< of the library's A, B, D
  uint32_t reduction = 0;
  uint64_t algorithm = 0;  ///< of the last product
  int32_t compute_type = 0;
  size_t workspace = 0;
  bool workspace_given = false;
} script;

cublasStatus_t offer(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference, int asked,
                     cublasLtMatmulHeuristicResult_t results[], int* count) {
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

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a_data,
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
  const bool with_bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const bool sums_columns = epilogue == CUBLASLT_EPILOGUE_BGRADB;
  EXPECT_TRUE(relu || with_bias || sums_columns || epilogue == CUBLASLT_EPILOGUE_DEFAULT);
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
        D.store(D.at(batch, i, j), relu ? std::max(value, 0.0) : value);
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

struct Layouts {
  bool a, b;  ///< transposed?
};

View factor(const DeviceArray& array, int64_t batches, bool transposed, int64_t rows, int64_t columns,
            int64_t batch_stride) {
  View view = array.view();
  view.sizes = {batches, rows, columns};
  view.strides = {batch_stride, transposed ? 1 : columns, transposed ? rows : 1};
  return view;
}

TEST_F(CublasLt, EveryLayoutDtypeAndEpilogueMeansTheContractsProduct) {
  constexpr DeviceKind kCpu = DeviceKind::cpu;
  for (const auto& [in, out] : {std::pair{DType::f32, DType::f32},
                                {DType::f64, DType::f64},
                                {DType::bf16, DType::bf16},
                                {DType::f16, DType::f16},
                                {DType::bf16, DType::f32},
                                {DType::f16, DType::f32}})
    for (const auto& [ta, tb] : {Layouts{false, false}, {false, true}, {true, false}, {true, true}})
      for (const auto& [B, M, N, K] :
           {std::array<int64_t, 4>{1, 5, 7, 3}, {3, 4, 6, 8}, {2, 1, 5, 4}, {2, 5, 1, 4}, {1, 3, 4, 1}, {1, 1, 1, 1}})
        for (const bool broadcast : {false, true})
          for (const bool with_bias : {false, true})
            for (const Grad grad : {Grad::overwrite, Grad::accumulate}) {
              if (with_bias && out == DType::f64) continue;
              SCOPED_TRACE(str(in, "->", out, " ta ", ta, " tb ", tb, " B ", B, " M ", M, " N ", N, " K ", K,
                               " broadcast ", broadcast, " bias ", with_bias, " accumulate ",
                               grad == Grad::accumulate));
              const int64_t b_batches = broadcast ? 1 : B;
              const auto a = uniform(B * M * K, in), b = uniform(b_batches * K * N, in), bias = uniform(N, out),
                         old = uniform(B * M * N, out);
              const DeviceArray a_array(kCpu, in, {B * M * K}, a), b_array(kCpu, in, {b_batches * K * N}, b),
                  bias_array(kCpu, out, {N}, bias);
              DeviceArray y(kCpu, out, {B, M, N});
              if (grad == Grad::accumulate) y.write(old);
              const View a_view = factor(a_array, B, ta, M, K, M * K),
                         b_view = factor(b_array, B, tb, K, N, broadcast ? 0 : K * N);
              const View bias_view = with_bias ? bias_array.view() : View::none(), y_view = y.view();
              const MatmulArguments arguments{0.5, grad};
              const MatmulCall call{queue, y_view, a_view, b_view, bias_view, arguments, Activation::none, {}};
              ASSERT_TRUE(cublaslt_supports(call));
              CublasLtPlans(library).of(call).run(call, 0);
              std::vector<double> want;
              for (int64_t n = 0; n < B; ++n)
                for (int64_t i = 0; i < M; ++i)
                  for (int64_t j = 0; j < N; ++j) {
                    double sum = 0;
                    for (int64_t k = 0; k < K; ++k)
                      sum += a[n * M * K + (ta ? k * M + i : i * K + k)] *
                             b[(broadcast ? 0 : n * K * N) + (tb ? j * K + k : k * N + j)];
                    want.push_back(0.5 * sum + (with_bias ? bias[j] : 0) +
                                   (grad == Grad::accumulate ? old[want.size()] : 0));
                  }
              EXPECT_TRUE(near(y.host(), want, tolerance(out, K)));
            }
}

/// y [3, 4] = a [3, 5] @ b [5, 4] in f32.
struct Small {
  DeviceArray a{DeviceKind::cpu, DType::f32, {1, 3, 5}, uniform(15)},
      b{DeviceKind::cpu, DType::f32, {1, 5, 4}, uniform(20)}, y{DeviceKind::cpu, DType::f32, {1, 3, 4}},
      bias{DeviceKind::cpu, DType::f32, {4}, uniform(4)};
  View a_view = a, b_view = b, y_view = y, bias_view = View::none();
  MatmulArguments arguments;
  Queue queue;
  Activation activation = Activation::none;
  View residual = View::none(), row_sums = View::none();
  MatmulCall call() const {
    return {queue, y_view, a_view, b_view, bias_view, arguments, activation, residual, row_sums};
  }
  /// a @ b + bias
  std::vector<double> sums() const {
    std::vector<double> values;
    const auto left = a.host(), right = b.host(), row = bias.host();
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 4; ++j) {
        values.push_back(bias_view ? row[j] : 0);
        for (size_t k = 0; k < 5; ++k) values.back() += left[i * 5 + k] * right[k * 4 + j];
      }
    return values;
  }
};

TEST_F(CublasLt, ViewsWithPitchAndOffset) {  // columns of a wider matrix, one of several interleaved
  Small small;
  const auto wide = uniform(3 * 11, DType::f32);
  const DeviceArray memory(DeviceKind::cpu, DType::f32, {3, 11}, wide);
  small.a_view = memory;
  small.a_view.rank = 3;
  small.a_view.sizes = {1, 3, 5};
  small.a_view.strides = {33, 11, 1};
  small.a_view.data = static_cast<float*>(memory.view().data) + 3;
  CublasLtPlans(library).of(small.call()).run(small.call(), 0);
  std::vector<double> want;
  const auto b = small.b.host();
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      want.push_back(0);
      for (int k = 0; k < 5; ++k) want.back() += wide[i * 11 + 3 + k] * b[k * 4 + j];
    }
  EXPECT_TRUE(near(small.y.host(), want, tolerance(DType::f32, 5)));
}

TEST_F(CublasLt, OneRowMayHaveAnyStride) {
  Small small;
  small.a_view.sizes[1] = small.y_view.sizes[1] = 1;
  small.a_view.strides[1] = 0;
  small.y_view.strides[1] = 2;
  ASSERT_TRUE(cublaslt_supports(small.call()));
  CublasLtPlans(library).of(small.call()).run(small.call(), 0);
  auto want = small.sums(), got = small.y.host();
  want.resize(4);
  got.resize(4);
  EXPECT_TRUE(near(got, want, tolerance(DType::f32, 5)));
}

TEST_F(CublasLt, ReluAndAResidualAreEpilogues) {
  CublasLtPlans plans(library);
  for (const bool with_bias : {false, true}) {
    Small small;
    if (with_bias) small.bias_view = small.bias;
    small.activation = Activation::relu;
    ASSERT_TRUE(cublaslt_supports(small.call()));
    plans.of(small.call()).run(small.call(), 0);
    auto want = small.sums();
    for (double& value : want) value = std::max(value, 0.0);
    EXPECT_TRUE(near(small.y.host(), want, tolerance(DType::f32, 5)));

    const auto values = uniform(12, DType::f32);
    const DeviceArray residual(DeviceKind::cpu, DType::f32, {1, 3, 4}, values);
    small.activation = Activation::none;
    for (const bool in_place : {false, true}) {  // the residual may be y itself
      if (in_place) small.y.write(values);
      small.residual = in_place ? small.y_view : residual.view();
      ASSERT_TRUE(cublaslt_supports(small.call()));
      plans.of(small.call()).run(small.call(), 0);
      want = small.sums();
      for (size_t i = 0; i < want.size(); ++i) want[i] += values[i];
      EXPECT_TRUE(near(small.y.host(), want, tolerance(DType::f32, 5)));
    }
    small.activation = Activation::relu;  // the library would add first
    EXPECT_FALSE(cublaslt_supports(small.call()));
    small.residual = View::none();
    for (const Activation other : {Activation::gelu, Activation::gelu_tanh}) {
      small.activation = other;
      EXPECT_FALSE(cublaslt_supports(small.call()));
    }
  }
}

TEST_F(CublasLt, Tf32IsAnotherPlan) {
  Small small;
  CublasLtPlans plans(library);
  CublasLtPlan& exact = plans.of(small.call());
  exact.run(small.call(), 0);
  EXPECT_EQ(script.compute_type, CUBLAS_COMPUTE_32F);
  {
    const Tf32Scope scope;
    CublasLtPlan& rounded = plans.of(small.call());
    EXPECT_NE(&rounded, &exact);
    rounded.run(small.call(), 0);
    EXPECT_EQ(script.compute_type, CUBLAS_COMPUTE_32F_FAST_TF32);
    EXPECT_THAT(problem_of(small.call()).text(), testing::HasSubstr(" tf32=1 "));
  }
  EXPECT_EQ(&plans.of(small.call()), &exact);
}

TEST_F(CublasLt, SumsOfRowsAreABiasGradient) {
  for (const bool transposed : {false, true}) {  // linear_backward_weight's a is
    Small small;
    if (transposed) small.a_view.strides = {15, 1, 3};
    CublasLtPlans plans(library);
    const auto run = [&](const DeviceArray& to) {
      small.row_sums = to;
      ASSERT_TRUE(cublaslt_supports(small.call()));
      plans.of(small.call()).run(small.call(), 0);
      std::vector<double> want(3), product(12);
      const auto a = small.a.host(), b = small.b.host();
      for (size_t i = 0; i < 3; ++i)
        for (size_t k = 0; k < 5; ++k) {
          const double left = a[transposed ? k * 3 + i : i * 5 + k];
          want[i] += left;
          for (size_t j = 0; j < 4; ++j) product[i * 4 + j] += left * b[k * 4 + j];
        }
      EXPECT_TRUE(near(to.host(), want, tolerance(DType::f32, 5)));
      EXPECT_TRUE(near(small.y.host(), product, tolerance(DType::f32, 5)));
    };
    const DeviceArray one(DeviceKind::cpu, DType::f32, {3}), other(DeviceKind::cpu, DType::f32, {3});
    run(one);
    run(other);  // the pointer is that of each call
    small.row_sums.dtype = DType::bf16;
    EXPECT_FALSE(cublaslt_supports(small.call()));
    small.row_sums.dtype = small.y_view.dtype = small.a_view.dtype = small.b_view.dtype = DType::f64;
    EXPECT_FALSE(cublaslt_supports(small.call()));
  }
}

TEST_F(CublasLt, WhatItHasNoLayoutForIsLeftToOurKernel) {
  Small small;
  EXPECT_TRUE(cublaslt_supports(small.call()));
  small.a_view.strides[1] = 0;  // one row, seen as three
  EXPECT_FALSE(cublaslt_supports(small.call()));
  small.a_view.strides[1] = 2;  // windows that overlap
  EXPECT_FALSE(cublaslt_supports(small.call()));
  small.a_view = small.a;
  small.a_view.sizes[2] = small.b_view.sizes[1] = 0;
  EXPECT_FALSE(cublaslt_supports(small.call()));
  Small mixed;
  mixed.bias_view = mixed.bias;
  EXPECT_TRUE(cublaslt_supports(mixed.call()));
  mixed.bias_view.dtype = DType::bf16;
  EXPECT_FALSE(cublaslt_supports(mixed.call()));
  mixed.bias_view.dtype = mixed.y_view.dtype = mixed.a_view.dtype = mixed.b_view.dtype = DType::f64;
  EXPECT_FALSE(cublaslt_supports(mixed.call()));
  mixed.bias_view = View::none();
  EXPECT_TRUE(cublaslt_supports(mixed.call()));
}

TEST_F(CublasLt, UsableOffersBecomeVariants) {
  script.offers = {an_offer(10, size_t{33} << 20),
                   an_offer(11, 0, CUBLAS_STATUS_NOT_SUPPORTED),
                   an_offer(12, 4096),
                   an_offer(13),
                   an_offer(14),
                   an_offer(15),
                   an_offer(16),
                   an_offer(17)};
  Small small;
  CublasLtPlans plans(library);
  CublasLtPlan& plan = plans.of(small.call());
  EXPECT_EQ(script.workspace_asked, size_t{32} << 20);
  EXPECT_EQ(script.reduction, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  ASSERT_EQ(plan.variants(), 4);
  for (int variant = 0; variant < 4; ++variant) {
    plan.run(small.call(), variant);
    EXPECT_EQ(script.algorithm, 12u + static_cast<unsigned>(variant));
    EXPECT_EQ(script.workspace, variant == 0 ? 4096u : 0u);
    EXPECT_EQ(script.workspace_given, variant == 0);
  }
  EXPECT_THAT(error_text([&] { plan.run(small.call(), 4); }),
              testing::StartsWith("matmul: cuBLASLt offers 4 algorithms, not number 4, for matmul in=f32"));
}

TEST_F(CublasLt, AlignmentIsTheViewsAndPartOfTheProblem) {
  Small small;
  CublasLtPlans plans(library);
  CublasLtPlan& aligned = plans.of(small.call());
  EXPECT_EQ(script.alignments[0], 16u);
  EXPECT_EQ(&plans.of(small.call()), &aligned);
  small.a_view.data = static_cast<char*>(small.a_view.data) + 4;
  small.y_view.data = static_cast<char*>(small.y_view.data) + 8;
  EXPECT_NE(&plans.of(small.call()), &aligned);
  EXPECT_EQ(script.alignments[0], 16u);  // the library's A is b
  EXPECT_EQ(script.alignments[1], 4u);
  EXPECT_EQ(script.alignments[2], 8u);
}

TEST_F(CublasLt, TheBiasIsThatOfEachCall) {
  Small small;
  small.bias_view = small.bias;
  CublasLtPlans plans(library);
  CublasLtPlan& plan = plans.of(small.call());
  plan.run(small.call(), 0);
  const auto first = small.y.host();
  const DeviceArray other(DeviceKind::cpu, DType::f32, {4}, {10, 20, 30, 40});
  const auto old = small.bias.host();
  small.bias_view = other;
  EXPECT_EQ(&plans.of(small.call()), &plan);
  plan.run(small.call(), 0);
  const auto second = small.y.host();
  for (size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(second[i] - first[i], 10.0 * static_cast<double>(i % 4 + 1) - old[i % 4], 1e-4);
}

TEST_F(CublasLt, ErrorsNameTheFunctionTheStatusAndTheProblem) {
  Small small;
  const std::string problem =
      "matmul in=f32 out=f32 B=1 M=3 N=4 K=5 a0=15 a1=5 a2=1 b0=20 b1=4 b2=1 y0=12 bias=0 bias_align=0 accumulate=0 "
      "activation=0 residual_align=0 row_sums_align=0 "
      "y_align=16 a_align=16 b_align=16";
  script.heuristic = CUBLAS_STATUS_NOT_SUPPORTED;
  EXPECT_EQ(error_text([&] { CublasLtPlans(library).of(small.call()); }),
            str("matmul: cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED (",
                real().GetStatusString(CUBLAS_STATUS_NOT_SUPPORTED), "); ", problem));
  script.heuristic = CUBLAS_STATUS_SUCCESS;
  script.offers = {an_offer(1, 0, CUBLAS_STATUS_NOT_SUPPORTED)};
  EXPECT_EQ(error_text([&] { CublasLtPlans(library).of(small.call()); }),
            "matmul: cublasLtMatmulAlgoGetHeuristic: has no algorithm for " + problem);
  script.offers = {an_offer(1)};
  script.product = CUBLAS_STATUS_EXECUTION_FAILED;
  CublasLtPlans plans(library);
  EXPECT_EQ(error_text([&] { plans.of(small.call()).run(small.call(), 0); }),
            str("matmul: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED (",
                real().GetStatusString(CUBLAS_STATUS_EXECUTION_FAILED), "); ", problem));
}

TEST_F(CublasLt, WithoutAGpuTheRealLibrarySaysSo) {
  if (runs_on(DeviceKind::cuda)) GTEST_SKIP() << "there is a GPU";
  Small small;
  EXPECT_EQ(error_text([&] { CublasLtPlans(real()).of(small.call()); }),
            str("matmul: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (",
                real().GetStatusString(CUBLAS_STATUS_NOT_INITIALIZED), ")"));
}

}  // namespace
}  // namespace weft::tests
