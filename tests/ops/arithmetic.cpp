// SPDX-License-Identifier: Apache-2.0
#include "core/ops/arithmetic.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/derivatives.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/complex.h"
#include "core/ops/counts.h"
#include "core/ops/layers/element_losses.h"
#include "core/ops/products.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/slices.h"
#include "core/ops/sort.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

OpInput places_of(int64_t count, int64_t below) {
  return {.sizes = {count}, .values = Values::classes, .classes = below, .gradient = false};
}

// clang-format off
const AddCases arithmetic_cases{
    {"atan2", {{{3, 5}}, {{5}, Values::positive}}, BOTH(atan2(x[0], x[1])), 8},
    {"atan2_behind", {{{3, 5}, Values::positive}, {{3, 5}}}, BOTH(atan2(x[0], x[1])), 8},
    // Quotients from 2.2 to 2.8.
    {"fmod", {{{3, 5}, Values::unit}, {{5}, Values::unit}}, BOTH(fmod(affine(x[0], 0.1, -2.5), affine(x[1], 0.05, 1))),
     8},
    {"remainder", {{{3, 5}, Values::unit}, {{5}, Values::unit}},
     BOTH(remainder(affine(x[0], 0.1, -2.5), affine(x[1], 0.05, 1))), 8},
    {"angle", {{{4, 2}, Values::apart}}, BOTH(angle(view_as_complex(x[0]))), 8, false},
    {"lerp", {{{3, 5}}, {{5}}, {{3, 1}}}, BOTH(lerp(x[0], x[1], x[2])), 8},
    {"lerp_number", {{{3, 5}}, {{3, 5}}}, BOTH(lerp(x[0], x[1], 0.3))},
    {"logaddexp", {{{3, 5}, Values::apart}, {{5}}}, BOTH(logaddexp(x[0], x[1])), 8},
    {"fmax", {{{3, 5}, Values::apart}, {{5}}}, BOTH(fmax(x[0], x[1]))},
    {"fmin", {{{3, 5}, Values::apart}, {{5}}}, BOTH(fmin(x[0], x[1]))},
    {"heaviside", {{{3, 5}, Values::ties, Layout::dense, 0, false}, {{5}, Values::normal, Layout::dense, 0, false}},
     BOTH(heaviside(x[0], x[1])), 1, true, Derivative::none},
    {"frac", {{{3, 9}, Values::apart}}, BOTH(frac(x[0] + 0.06))},
    {"deg2rad", {{{3, 5}}}, BOTH(deg2rad(x[0]))},
    {"rad2deg", {{{3, 5}}}, BOTH(rad2deg(x[0]))},
    {"multi_margin_loss", {{{5, 7}, Values::apart}, {{5}, Values::classes, Layout::dense, 7}},
     CALL(multi_margin_loss(x[0], x[1], 2, 0.3, Reduction::none)),
     "F.multi_margin_loss(x[0], x[1], p=2, margin=0.3, reduction='none')", 7},
    {"multi_margin_loss_mean", {{{5, 7}, Values::apart}, {{5}, Values::classes, Layout::dense, 7}},
     CALL(multi_margin_loss(x[0], x[1], 1, 0.3)), "F.multi_margin_loss(x[0], x[1], margin=0.3)", 35},
    {"nan_to_num", {{{3, 5}}}, BOTH(nan_to_num(x[0]))},
    {"isclose", {{{3, 5}}, {{3, 5}}}, BOTH(isclose(x[0], x[1], 0.1, 0.2)), 1, false, Derivative::none},
    {"hypot", {{{3, 5}}, {{5}}}, BOTH(hypot(x[0], x[1])), 8},
    {"copysign", {{{3, 5}, Values::apart}, {{3, 5}, Values::apart, Layout::dense, 0, false}},
     BOTH(copysign(x[0], x[1]))},
    {"xlogy", {{{3, 5}}, {{5}, Values::positive}}, BOTH(xlogy(x[0], x[1])), 12},
    {"addcmul", {{{3, 5}}, {{5}}, {{3, 1}}}, CALL(addcmul(x[0], x[1], x[2], 0.5)),
     "addcmul(x[0], x[1], x[2], value=0.5)", 8},
    {"addcdiv", {{{3, 5}}, {{5}}, {{3, 1}, Values::positive}}, CALL(addcdiv(x[0], x[1], x[2], 0.5)),
     "addcdiv(x[0], x[1], x[2], value=0.5)", 8},
    {"logit", {{{3, 5}, Values::positive}}, BOTH(logit(x[0] * 0.4)), 8},
    {"logit_margin", {{{3, 5}, Values::positive}}, BOTH(logit(x[0] * 0.6, 0.25)), 8},
    {"sinc", {{{3, 5}, Values::apart}}, BOTH(sinc(x[0])), 8},
    {"cov", {{{3, 8}}}, CALL(cov(x[0], 0)), "cov(x[0], correction=0)", 16},
    {"corrcoef", {{{3, 8}}}, BOTH(corrcoef(x[0])), 64},
    {"trapezoid", {{{6, 3}}}, CALL(trapezoid(x[0], 0.5, 0)), "trapezoid(x[0], dx=0.5, dim=0)", 6},
    {"trapezoid_points", {{{2, 6, 3}}, {{6}}}, CALL(trapezoid(x[0], x[1], 1)), "trapezoid(x[0], x[1], dim=1)", 18},
    {"isin", {{{3, 5}, Values::ties}, {{4}, Values::ties}}, BOTH(isin(x[0], x[1])), 1, true, Derivative::none},
    {"full_like", {{{3, 5}}}, BOTH(full_like(x[0], 2.5)), 1, true, Derivative::none},
    {"ones_like", {{{3, 5}}}, BOTH(ones_like(x[0])), 1, true, Derivative::none},
    {"block_diag", {{{2, 3}}, {{4}}, {{1, 2}}}, CALL(block_diag(x)), "block_diag(*x)"},
    {"dot", {{{7}}, {{7}}}, BOTH(dot(x[0], x[1])), 7},
    {"outer", {{{4}}, {{3}}}, BOTH(outer(x[0], x[1])), 4},
    {"kron", {{{2, 3}}, {{3, 2}}}, BOTH(kron(x[0], x[1])), 6},
    {"cross", {{{4, 3}}, {{1, 3}}}, CALL(cross(x[0], x[1])), "linalg.cross(x[0], x[1])", 12},
    {"trace", {{{4, 3}}}, BOTH(trace(x[0])), 3},
    {"movedim", {{{2, 3, 4}}}, BOTH(movedim(x[0], 0, -1))},
    {"diff", {{{3, 6}}}, CALL(diff(x[0], 1, 2)), "diff(x[0], 2, 1)", 4},
    {"index_add", {{{3, 5}}, places_of(4, 5), {{3, 4}}}, CALL(index_add(x[0], 1, x[1], x[2], 2)),
     "x[0].index_add(1, x[1], x[2], alpha=2)", 5},
    {"index_copy", {{{5, 2}}, {{2, 2}}},
     CALL(index_copy(x[0], 0, Tensor::from<int64_t>({3, 1}).to(x[0].device()), x[1])),
     "x[0].index_copy(0, tensor([3, 1]), x[1])"},
    {"index_fill", {{{3, 5}}, places_of(2, 5)}, BOTH(index_fill(x[0], 1, x[1], 7))},
    {"count_nonzero", {{{3, 5}}}, BOTH(count_nonzero(floor(x[0]), {1})), 1, false, Derivative::none},
    {"nansum", {{{3, 5}}}, BOTH(nansum(x[0], {1})), 5},
    {"nanmean", {{{3, 5}}}, BOTH(nanmean(x[0], {0}, true)), 3},
    {"binary_cross_entropy", {{{3, 5}}, {{3, 5}, Values::simplex, Layout::dense, 0, false}},
     BOTH(binary_cross_entropy(sigmoid(x[0]), x[1])), 60},
    {"poisson_nll_loss", {{{3, 5}}, {{3, 5}, Values::positive, Layout::dense, 0, false}},
     BOTH(poisson_nll_loss(x[0], x[1])), 15},
    {"poisson_nll_loss_of_rates", {{{3, 5}, Values::positive}, {{3, 5}, Values::positive, Layout::dense, 0, false}},
     CALL(poisson_nll_loss(x[0], x[1], {.log_input = false})), "poisson_nll_loss(x[0], x[1], log_input=False)", 15},
    {"margin_ranking_loss", {{{9}, Values::apart}, {{9}, Values::unit}},
     BOTH(margin_ranking_loss(x[0], x[1], sign(x[0] - 0.1), 3)), 9},
    {"hinge_embedding_loss", {{{9}, Values::apart}}, BOTH(hinge_embedding_loss(x[0], sign(x[0].detach()), 0.5)), 9},
    {"soft_margin_loss", {{{9}, Values::apart}}, BOTH(soft_margin_loss(x[0], sign(x[0].detach()))), 9},
    {"pairwise_distance", {{{3, 5}}, {{5}}}, BOTH(pairwise_distance(x[0], x[1])), 15}};
// clang-format on

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> of(const Tensor& y) { return y.to(DType::f64).contiguous().to_vector<double>(); }

TEST(Arithmetic, HasPythonsAndCsRemainders) {
  for (const DeviceKind kind : tests::test_devices())
    for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
      const Tensor a = Tensor::from<double>({7, -7, 7, -7, 6, 0}).to(dtype).to(Device{kind});
      const Tensor b = Tensor::from<double>({3, 3, -3, -3, 3, 5}).to(dtype).to(Device{kind});
      const auto host = [](const Tensor& y) { return of(y.to(Device{})); };
      EXPECT_EQ(host(fmod(a, b)), (std::vector<double>{1, -1, 1, -1, 0, 0})) << dtype;
      EXPECT_EQ(host(remainder(a, b)), (std::vector<double>{1, 2, -2, -1, 0, 0})) << dtype;
      EXPECT_EQ(host(remainder(a, -3)), (std::vector<double>{-2, -1, -2, -1, 0, 0})) << dtype;
    }
  const Tensor i = Tensor::from<int64_t>({5, INT64_MIN}), zero = Tensor::from<int64_t>({0, -1});
  EXPECT_EQ(of(remainder(i, zero)), (std::vector<double>{0, 0}));
  EXPECT_TRUE(std::isnan(fmod(Tensor::from<double>({1}), 0).item()));
  EXPECT_EQ(remainder(Tensor::from<int64_t>({5}), 1.5).item(), 0.5);
}

TEST(Arithmetic, NumbersBesideNan) {
  const Tensor a = Tensor::from<double>({NAN, 1, NAN, -kInf}).requires_grad_(),
               b = Tensor::from<double>({2, NAN, NAN, 3}).requires_grad_();
  const Tensor y = fmax(a, b);
  EXPECT_EQ(of(y.slice(0, 0, 2)), (std::vector<double>{2, 1}));
  EXPECT_TRUE(std::isnan(y.select(0, 2).item()));
  EXPECT_EQ(of(fmin(a, b).slice(0, 3, 1)), (std::vector<double>{-kInf}));
  EXPECT_EQ(of(fmin(a, b).slice(0, 0, 2)), (std::vector<double>{2, 1}));
  (sum(y.slice(0, 0, 2)) + y.select(0, 3)).backward();
  EXPECT_EQ(of(a.grad()), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(of(b.grad()), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(of(fmax(Tensor::from<int64_t>({1, 5}), Tensor::from<int64_t>({4, 2}))), (std::vector<double>{4, 5}));
  EXPECT_EQ(of(heaviside(Tensor::from<double>({-2, 0, 3, NAN}), Tensor::from<double>({0.5}))),
            (std::vector<double>{0, 0.5, 1, 0}));
  EXPECT_EQ(of(frac(Tensor::from<double>({2.5, -2.5, 0}))), (std::vector<double>{0.5, -0.5, 0}));
  EXPECT_EQ(error_text([] { frac(Tensor::zeros({1}, DType::i64)); }),
            "frac: expected a floating tensor, got i64[1] on cpu");
  EXPECT_EQ(deg2rad(Tensor::from<int64_t>({180})).dtype(), DType::f32);
}

TEST(Arithmetic, AtTheEdges) {
  const Tensor zero = Tensor::from<double>({0}).requires_grad_(), other = Tensor::from<double>({0}).requires_grad_();
  atan2(zero, other).backward();
  EXPECT_EQ(zero.grad().item(), 0);
  EXPECT_EQ(other.grad().item(), 0);
  EXPECT_EQ(of(atan2(Tensor::from<double>({0, 1, 0, -1}), Tensor::from<double>({1, 0, -1, 0}))),
            (std::vector<double>{0, M_PI / 2, M_PI, -M_PI / 2}));
  EXPECT_EQ(of(angle(complex(Tensor::from<double>({0, -1}), Tensor::from<double>({2, 0})))),
            (std::vector<double>{M_PI / 2, M_PI}));
  const Tensor a = Tensor::from<double>({-kInf, 1000, kInf}).requires_grad_(),
               b = Tensor::from<double>({-kInf, 1000, 0});
  const Tensor sums = logaddexp(a, b);
  EXPECT_EQ(of(sums), (std::vector<double>{-kInf, 1000 + std::log(2.0), kInf}));
  sum(sums.slice(0, 1, 1)).backward();
  EXPECT_EQ(of(a.grad()), (std::vector<double>{0, 0.5, 0}));
  const Tensor odd = Tensor::from<float>({NAN, INFINITY, -INFINITY, 2});
  constexpr double kMost = std::numeric_limits<float>::max();
  EXPECT_EQ(of(nan_to_num(odd)), (std::vector<double>{0, kMost, -kMost, 2}));
  EXPECT_EQ(of(nan_to_num(odd, 5, 6, 7)), (std::vector<double>{5, 6, 7, 2}));
  for (const DType dtype : {DType::bf16, DType::f16})
    EXPECT_TRUE(static_cast<bool>(all(isfinite(nan_to_num(odd.to(dtype)))))) << dtype;
  const Tensor x = Tensor::from<float>({1, NAN, 3, 0}).requires_grad_();
  nanmean(x).backward();
  EXPECT_NEAR(nanmean(x).item(), 4 / 3., 1e-7);
  EXPECT_EQ(nansum(x).item(), 4);
  EXPECT_EQ(x.grad().to_vector<float>()[1], 0);
  EXPECT_EQ(count_nonzero(Tensor::from<int64_t>({1, 0, -2})).item(), 2);
}

TEST(Arithmetic, SecondDerivativesWhereFormulasMeet) {
  const auto expect = [](const Tensor& got, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(of(got)[i], expected[i], 1e-6) << i;
  };
  const Tensor equal = Tensor::from<double>({1, 1});
  expect(autograd::hessian([](const Tensor& x) { return logaddexp(x[0], x[1]); }, equal), {0.25, -0.25, -0.25, 0.25});
  expect(autograd::hessian([](const Tensor& x) { return logcumsumexp(x, 0)[1]; }, equal), {0.25, -0.25, -0.25, 0.25});
  const double at_zero = -M_PI * M_PI / 3;
  expect(autograd::hessian([](const Tensor& x) { return sum(sinc(x)); }, Tensor::from<double>({0, 1e-5})),
         {at_zero, 0, 0, at_zero});
  for (const double x : {0.0795, 0.0797})  // both sides of the series' end
    EXPECT_NEAR(sinc(Tensor::from<double>({x})).item(), std::sin(M_PI * x) / (M_PI * x), 1e-15);
}

TEST(Arithmetic, AWeightOfOneIsTheSecondEnd) {
  const Tensor a = Tensor::from<float>({1e8F}), b = Tensor::from<float>({1});
  EXPECT_EQ(lerp(a, b, 1).item(), 1);
  EXPECT_EQ(lerp(a, b, ones_like(a)).item(), 1);
  EXPECT_EQ(lerp(a, b, 0).item(), 1e8F);
  EXPECT_EQ(lerp(Tensor::from<int64_t>({7}), Tensor::from<int64_t>({5}), 1).item(), 5);
}

TEST(Arithmetic, CertainProbabilitiesHaveAGradient) {
  const Tensor logits = Tensor::from<float>({20, -120, 1}).requires_grad_();
  binary_cross_entropy(sigmoid(logits), Tensor::from<float>({1, 0, 1})).backward();
  const std::vector<double> slopes = of(logits.grad());
  EXPECT_EQ(slopes[0], 0);
  EXPECT_EQ(slopes[1], 0);
  EXPECT_NEAR(slopes[2], -0.0896471, 1e-6);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor half = Tensor::from<float>({1, 0, 0.5}).to(dtype).requires_grad_();
    binary_cross_entropy(half, Tensor::from<float>({1, 0, 1}), Reduction::sum).backward();
    EXPECT_EQ(of(half.grad()), (std::vector<double>{0, 0, -2})) << dtype;
  }
  const Tensor p = Tensor::from<double>({0, 1, 0.5, 1}).requires_grad_();
  const Tensor t = Tensor::from<double>({0, 1, 1, 0}).requires_grad_();
  binary_cross_entropy(p, t).backward();
  EXPECT_EQ(of(p.grad()), (std::vector<double>{0, 0, -0.5, 2.5e11})) << "PyTorch's";
  EXPECT_EQ(of(t.grad()), (std::vector<double>{25, -25, 0, -25}));
  EXPECT_EQ(error_text([] { binary_cross_entropy(Tensor::from<float>({1.5}), Tensor::from<float>({1})); }),
            "binary_cross_entropy: expected probabilities from 0 to 1; bce_with_logits takes logits");
}

TEST(Arithmetic, AtTheEdgesOfSizesSignsAndLogarithms) {
  const Tensor a = Tensor::from<double>({0, 3e200, -kInf, NAN, 3e-200}).requires_grad_();
  const Tensor h = hypot(a, Tensor::from<double>({0, 4e200, NAN, 1, 4e-200}));
  EXPECT_EQ(h.select(0, 0).item(), 0);
  EXPECT_DOUBLE_EQ(h.select(0, 1).item(), 5e200);
  EXPECT_EQ(h.select(0, 2).item(), kInf);
  EXPECT_TRUE(std::isnan(h.select(0, 3).item()));
  EXPECT_DOUBLE_EQ(h.select(0, 4).item(), 5e-200);
  sum(h.slice(0, 0, 2)).backward();
  EXPECT_EQ(a.grad().select(0, 0).item(), 0);
  EXPECT_DOUBLE_EQ(a.grad().select(0, 1).item(), 0.6);
  EXPECT_EQ(of(copysign(Tensor::from<double>({1, -2, 3, -4}), Tensor::from<double>({-0.0, 0, -kInf, 5}))),
            (std::vector<double>{-1, 2, -3, 4}));
  const Tensor x = Tensor::from<double>({0, 0, 0, 2, 0}).requires_grad_();
  const Tensor y = xlogy(x, Tensor::from<double>({0, -1, kInf, 0, NAN}));
  EXPECT_EQ(of(y.slice(0, 0, 4)), (std::vector<double>{0, 0, 0, -kInf}));
  EXPECT_TRUE(std::isnan(y.select(0, 4).item()));
  sum(y.slice(0, 0, 2)).backward();
  EXPECT_EQ(of(x.grad().slice(0, 0, 2)), (std::vector<double>{0, 0}));
  const Tensor zero = Tensor::from<double>({0, kInf}).requires_grad_();
  const Tensor s = sinc(zero);
  EXPECT_EQ(s.select(0, 0).item(), 1);
  s.select(0, 0).backward();
  EXPECT_EQ(zero.grad().select(0, 0).item(), 0);
  EXPECT_EQ(of(logit(Tensor::from<double>({0, 1}))), (std::vector<double>{-kInf, kInf}));
  EXPECT_EQ(of(isin(Tensor::from<int64_t>({4, 1}), Tensor::from<int64_t>({}))), (std::vector<double>{0, 0}));
  EXPECT_EQ(of(isin(Tensor::from<int64_t>({4, INT64_MAX}), Tensor::from<int64_t>({INT64_MAX, -3}))),
            (std::vector<double>{0, 1}));
  EXPECT_EQ(trapezoid(Tensor::from<double>({5})).item(), 0);
}

TEST(Arithmetic, ComparesWithinATolerance) {
  const Tensor a = Tensor::from<double>({1, 100, kInf, NAN, 0}), b = Tensor::from<double>({1.05, 106, kInf, NAN, kInf});
  EXPECT_EQ(of(isclose(a, b, 0.05, 0)), (std::vector<double>{1, 0, 1, 0, 0}));
  EXPECT_FALSE(allclose(a, b));
  EXPECT_TRUE(allclose(Tensor::from<int64_t>({3, 4}), Tensor::from<int64_t>({3, 4})));
  EXPECT_TRUE(equal(Tensor::ones({2, 2}), Tensor::ones({2, 2})));
  EXPECT_FALSE(equal(Tensor::ones({2, 2}), Tensor::ones({4})));
  EXPECT_FALSE(equal(Tensor::ones({2}), Tensor::from<float>({1, 2})));
}

TEST(Arithmetic, OfWholeNumbersAndOfNothing) {
  EXPECT_EQ(dot(Tensor::from<int64_t>({1, 2}), Tensor::from<int64_t>({3, 4})).item(), 11);
  EXPECT_EQ(of(diff(Tensor::from<int64_t>({1, 4, 9, 16}), 0, 2)), (std::vector<double>{2, 2}));
  EXPECT_EQ(diff(Tensor::zeros({1}), 0, 3).numel(), 0);
}

TEST(Arithmetic, SaysWhatIsWrong) {
  const Tensor x = Tensor::zeros({2, 3}), v = Tensor::zeros({2});
  EXPECT_EQ(error_text([&] { dot(x, x); }), "dot: expected vectors [N], got f32[2,3] on cpu and f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { dot(v, Tensor::zeros({3})); }),
            "dot: expected vectors of one size, got f32[2] on cpu and f32[3] on cpu");
  EXPECT_EQ(error_text([&] { hypot(x, Tensor()); }).substr(0, 6), "hypot:");
  EXPECT_EQ(error_text([&] { copysign(Tensor::zeros({1}, DType::i64), Tensor::zeros({1}, DType::i64)); }),
            "copysign: expected floating tensors, got i64[1] on cpu and i64[1] on cpu");
  EXPECT_EQ(error_text([&] { logit(x, 0.6); }), "logit: expected a margin from 0 to 0.5, got 0.6");
  EXPECT_EQ(error_text([&] { sinc(Tensor()); }), "sinc: expected a floating tensor, got none");
  EXPECT_EQ(error_text([&] { cov(v); }), "cov: expected floating [V, N], N > 1, got f32[2] on cpu");
  EXPECT_EQ(error_text([&] {
              corrcoef(Tensor::zeros({2, 1}));
            }),
            "cov: expected floating [V, N], N > 1, got f32[2,1] on cpu");
  EXPECT_EQ(error_text([&] { trapezoid(Tensor::zeros({})); }),
            "trapezoid: expected a floating tensor with dimensions, got f32[] on cpu");
  EXPECT_EQ(error_text([&] { trapezoid(x, v); }),
            "trapezoid: expected a point for each of 3 values, got f32[2] on cpu");
  EXPECT_EQ(error_text([&] { isin(x, Tensor::zeros({1}, DType::f64)); }),
            "isin: expected values of x's dtype on its device, got f32[2,3] on cpu and f64[1] on cpu");
  EXPECT_EQ(error_text([&] { full_like(Tensor(), 1); }), "full_like: expected a tensor, got none");
  EXPECT_EQ(error_text([&] { block_diag({}); }), "block_diag: expected at least one matrix");
  EXPECT_EQ(error_text([&] {
              block_diag({x, Tensor::zeros({1, 1, 1})});
            }),
            "block_diag: expected matrices or vectors of one dtype on one device, got f32[1,1,1] on cpu beside "
            "f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { cross(v, v); }), "cross: expected 3 elements along dimension -1, got f32[2] on cpu");
  EXPECT_EQ(error_text([&] { trace(v); }), "trace: expected a matrix [M, N], got f32[2] on cpu");
  EXPECT_EQ(error_text([&] { index_add(x, 0, Tensor::from<int64_t>({1}), x); }),
            "index_add: expected a source [1,3], got f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { index_fill(x, 0, x, 1); }),
            "index_fill: expected a tensor and an index [K], got f32[2,3] on cpu and f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { diff(x, 0, -1); }), "diff: expected at least 0 times, got -1");
  EXPECT_EQ(error_text([&] { logaddexp(Tensor::zeros({1}, DType::i64), Tensor::zeros({1}, DType::i64)); }),
            "logaddexp: expected floating tensors, got i64[1] on cpu and i64[1] on cpu");
  EXPECT_EQ(
      error_text([&] { soft_margin_loss(x, v); }),
      "soft_margin_loss: expected a floating tensor and targets of its sizes, got f32[2,3] on cpu and f32[2] on cpu");
}

}  // namespace
}  // namespace weft::test
