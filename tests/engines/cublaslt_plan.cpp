// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt_plan.h"

#include <gmock/gmock.h>

#include "kernels/runtime/f32_products.h"
#include "tests/engines/cublaslt_without_gpu.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// Products by cuBLASLt, without a GPU.

namespace weft::tests {
namespace {

using namespace cublaslt_without_gpu;  // NOLINT

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

/// y [3, 4] = a [3, 5] @ b [5, 4].
struct Small {
  DType dtype = DType::f32;
  DeviceArray a{DeviceKind::cpu, dtype, {1, 3, 5}, uniform(15, dtype)},
      b{DeviceKind::cpu, dtype, {1, 5, 4}, uniform(20, dtype)}, y{DeviceKind::cpu, dtype, {1, 3, 4}},
      bias{DeviceKind::cpu, dtype, {4}, uniform(4, dtype)};
  View a_view = a, b_view = b, y_view = y, bias_view = View::none();
  MatmulArguments arguments{};
  Queue queue{};
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
    for (const Activation other : {Activation::gelu, Activation::gelu_tanh}) {  // for f32
      small.activation = other;
      EXPECT_FALSE(cublaslt_supports(small.call()));
    }
  }
}

TEST_F(CublasLt, TheTanhGeluOf16BitsIsAnEpilogue) {
  CublasLtPlans plans(library);
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const bool with_bias : {false, true}) {
      Small small{dtype};
      if (with_bias) small.bias_view = small.bias;
      small.activation = Activation::gelu_tanh;
      ASSERT_TRUE(cublaslt_supports(small.call()));
      plans.of(small.call()).run(small.call(), 0);
      auto want = small.sums();
      for (double& value : want) value = unary_value<Unary::gelu_tanh>(value, 0.0, 0.0);
      EXPECT_TRUE(near(small.y.host(), want, tolerance(dtype, 5)));
      small.activation = Activation::gelu;  // with erf
      EXPECT_FALSE(cublaslt_supports(small.call()));
      small.activation = Activation::gelu_tanh;
      small.residual = small.y;  // the library would add first
      EXPECT_FALSE(cublaslt_supports(small.call()));
    }
}

TEST_F(CublasLt, Tf32IsAnotherPlan) {
  Small small;
  CublasLtPlans plans(library);
  CublasLtPlan& exact = plans.of(small.call());
  exact.run(small.call(), 0);
  EXPECT_EQ(script.compute_type, CUBLAS_COMPUTE_32F);
  {
    const F32ProductsScope scope(F32Products::tf32);
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
