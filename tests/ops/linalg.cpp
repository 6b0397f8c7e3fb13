// SPDX-License-Identifier: Apache-2.0
#include "core/ops/linalg.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/graph.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "kernels/engines/cusolver.h"
#include "kernels/runtime/kernel_variant.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

using testing::HasSubstr;

#define EXPECT_REFUSAL(call, text) EXPECT_THAT(error_text([&] { call; }), HasSubstr(text))

OpCase factored(std::string name, std::vector<OpInput> inputs, OpFunction function, std::string torch) {
  return {std::move(name),
          std::move(inputs),
          std::move(function),
          std::move(torch),
          60,
          false,
          Derivative::smooth,
          {},
          WEFT_HAVE_LAPACKE ? "" : "LAPACKE"};
}

OpCase without_lapack(std::string name, std::vector<OpInput> inputs, OpFunction function, std::string torch) {
  OpCase made = factored(std::move(name), std::move(inputs), std::move(function), std::move(torch));
  made.needs = {};
  return made;
}

Tensor t(const Tensor& x) { return x.transpose(-1, -2); }

/// Matrices with singular values well apart and above 0: 2, 4, … on the diagonal, and a little of x.
Tensor apart(const Tensor& x) {
  const int64_t M = x.size(-2), N = x.size(-1), K = std::min(M, N);
  const Tensor d = diag_embed(Tensor::arange(K, x.dtype(), x.device(), 2, 2));
  return 0.2 * x + pad(pad(d, 0, 0, M - K), 1, 0, N - K);
}
Tensor symmetric(const Tensor& x) { return (apart(x) + t(apart(x))) / 2; }

Tensor factors(const Qr& of) { return concat({of.q, of.r}, 1); }

constexpr double kInf = std::numeric_limits<double>::infinity();

// clang-format off
const AddCases linalg_cases{
    factored("svd", {{{2, 4, 3}}},
     [](const Inputs& x) {
       const auto [u, s, vh] = svd(apart(x[0]));
       return concat({square(u), s.unsqueeze(1), square(vh)}, 1);
     },
     "(lambda u, s, v: concat([u.square(), s.unsqueeze(1), v.square()], 1))(*svd(apart(x[0])))"),
    factored("svd_wide", {{{3, 5}}},
     [](const Inputs& x) {
       const auto [u, s, vh] = svd(apart(x[0]));
       return concat({square(u).flatten(), s, square(vh).flatten()});
     },
     "(lambda u, s, v: concat([u.square().flatten(), s, v.square().flatten()]))(*svd(apart(x[0])))"),
    factored("svd_square", {{{3, 3}}},
     [](const Inputs& x) { const auto [u, s, vh] = svd(apart(x[0])); return matmul(u * exp(-s), vh); },
     "(lambda u, s, v: u * exp(-s) @ v)(*svd(apart(x[0])))"),
    factored("svdvals", {{{2, 3, 4}}}, CALL(svdvals(apart(x[0]))), "linalg.svdvals(apart(x[0]))"),
    factored("eigh", {{{2, 4, 4}}},
     [](const Inputs& x) {
       const auto [w, v] = eigh(symmetric(x[0]));
       return concat({square(v), w.unsqueeze(1)}, 1);
     },
     "(lambda w, v: concat([v.square(), w.unsqueeze(1)], 1))(*linalg.eigh(symmetric(x[0])))"),
    factored("eigvalsh", {{{3, 3}}}, CALL(eigvalsh(symmetric(x[0]))), "linalg.eigvalsh(symmetric(x[0]))"),
    factored("qr", {{{2, 4, 3}}}, CALL(factors(qr(apart(x[0])))), "concat([*linalg.qr(apart(x[0]))], 1)"),
    factored("qr_wide", {{{3, 5}}}, CALL(factors(qr(apart(x[0])))), "concat([*linalg.qr(apart(x[0]))], 1)"),
    factored("cholesky", {{{2, 4, 4}}}, BOTH(cholesky(symmetric(x[0])))),
    factored("solve", {{{2, 3, 3}}, {{2, 3, 4}}}, CALL(solve(apart(x[0]), x[1])), "linalg.solve(apart(x[0]), x[1])"),
    factored("solve_vector", {{{2, 3, 3}, Values::normal, Layout::transposed}, {{3}}}, CALL(solve(apart(x[0]), x[1])),
     "linalg.solve(apart(x[0]), x[1].expand(2, 3))"),
    factored("triangular_solve", {{{3, 3}}, {{2, 3, 2}}}, CALL(triangular_solve(apart(x[0]), x[1], false)),
     "linalg.solve_triangular(apart(x[0]), x[1], upper=False)"),
    factored("triangular_solve_upper", {{{2, 3, 3}}, {{3, 2}}}, CALL(triangular_solve(apart(x[0]), x[1], true)),
     "linalg.solve_triangular(apart(x[0]), x[1], upper=True)"),
    factored("inverse", {{{2, 3, 3}}}, BOTH(inverse(apart(x[0])))),
    factored("lstsq", {{{2, 5, 3}}, {{2, 5, 2}}}, CALL(lstsq(apart(x[0]), x[1])),
     "linalg.lstsq(apart(x[0]), x[1]).solution"),
    factored("lstsq_wide", {{{3, 5}}, {{3, 2}}}, CALL(lstsq(apart(x[0]), x[1])),
     "linalg.lstsq(apart(x[0]), x[1]).solution"),
    factored("pinv", {{{2, 4, 3}}}, CALL(pinv(apart(x[0]))), "linalg.pinv(apart(x[0]))"),
    factored("pinv_wide", {{{2, 4}}}, CALL(pinv(apart(x[0]))), "linalg.pinv(apart(x[0]))"),
    factored("pinv_of_low_rank", {{{4, 2}}, {{2, 3}}}, CALL(pinv(matmul(apart(x[0]), apart(x[1])), 1e-4)),
     "linalg.pinv(apart(x[0]) @ apart(x[1]), rtol=1e-4)"),
    factored("det", {{{2, 3, 3}}}, BOTH(det(apart(x[0])))),
    factored("slogdet", {{{2, 4, 4}}},
     [](const Inputs& x) { const auto [sign, log] = slogdet(-apart(x[0])); return sign * log; },
     "(lambda s, log_abs: s * log_abs)(*slogdet(-apart(x[0])))"),
    without_lapack("matrix_norm", {{{2, 3, 4}}}, CALL(matrix_norm(x[0])), "linalg.matrix_norm(x[0])"),
    factored("matrix_norm_nuclear", {{{2, 3, 4}}}, CALL(matrix_norm(apart(x[0]), MatrixNorm::nuclear, true)),
     "linalg.matrix_norm(apart(x[0]), 'nuc', keepdim=True)"),
    factored("matrix_norm_spectral", {{{2, 3, 4}}}, CALL(matrix_norm(apart(x[0]), MatrixNorm::spectral)),
     "linalg.matrix_norm(apart(x[0]), 2)"),
    without_lapack("matrix_norm_columns", {{{2, 3, 4}, Values::positive}}, CALL(matrix_norm(x[0], MatrixNorm::columns)),
     "linalg.matrix_norm(x[0], 1)"),
    without_lapack("matrix_norm_rows", {{{2, 3, 4}, Values::positive}}, CALL(matrix_norm(x[0], MatrixNorm::rows, true)),
     "linalg.matrix_norm(x[0], inf, keepdim=True)"),
    without_lapack("vector_norm", {{{3, 4}}}, CALL(vector_norm(x[0], 2, {1})), "linalg.vector_norm(x[0], 2, 1)"),
    without_lapack("vector_norm_3", {{{3, 4}, Values::apart}}, CALL(vector_norm(x[0], 3, {0}, true)),
     "linalg.vector_norm(x[0], 3, 0, True)"),
    without_lapack("vector_norm_1", {{{3, 4}, Values::apart}}, CALL(vector_norm(x[0], 1)),
     "linalg.vector_norm(x[0], 1)"),
    without_lapack("vector_norm_largest", {{{3, 4}, Values::positive}},
     CALL(vector_norm(x[0], kInf, {1})), "linalg.vector_norm(x[0], inf, 1)"),
    without_lapack("vector_norm_smallest", {{{3, 4}, Values::positive}},
     CALL(vector_norm(x[0], -kInf, {1})), "linalg.vector_norm(x[0], -inf, 1)")};
// clang-format on

class Linalg : public testing::Test {
  void SetUp() override {
    if (!WEFT_HAVE_LAPACKE) GTEST_SKIP() << "needs a build with LAPACKE; this one has its stub";
  }
};

TEST_F(Linalg, SingularValuesThatAreEqualHaveAGradient) {
  const Tensor x = eye(3, DType::f64).requires_grad_();
  matrix_norm(x, MatrixNorm::nuclear).backward();
  const std::vector<double> got = x.grad().to_vector<double>(), wanted = eye(3).to_vector<double>();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
}

TEST_F(Linalg, SingularValuesThatAreZeroHaveAGradient) {
  for (const Shape& sizes : {Shape({3, 2}), Shape({2, 3})}) {
    const Tensor x = Tensor::from<double>({1, 0, 0, 0, 0, 0}, sizes).requires_grad_();
    matrix_norm(x, MatrixNorm::spectral).backward();
    const std::vector<double> got = x.grad().to_vector<double>(), wanted = x.detach().to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
  }
}

/// Calls body(device) for each device of the tests.
template <class Body>
void each_device(const Body& body) {
  for (const DeviceKind kind : tests::test_devices()) {
    SCOPED_TRACE(name(kind));
    body(Device{kind, 0});
  }
}

TEST_F(Linalg, SingularMatrices) {
  each_device([](Device device) {
    const Tensor x = Tensor::from<double>({1, 2, 2, 4}, {2, 2}).to(device);
    EXPECT_EQ(det(x).item(), 0);
    Tensor learned = x.clone().requires_grad_();
    det(learned).backward();
    const std::vector<double> slope = learned.grad().to_vector<double>(), cofactors{4, -2, -2, 1};
    for (size_t i = 0; i < slope.size(); ++i) EXPECT_NEAR(slope[i], cofactors[i], 1e-14);
    const auto [sign, log] = slogdet(x);
    EXPECT_EQ(sign.item(), 0);
    EXPECT_EQ(log.item(), -std::numeric_limits<double>::infinity());
    EXPECT_REFUSAL(inverse(x), "solve: expected invertible matrices, got matrix 0 that is singular (pivot 2 is 0)");
    const Tensor p = pinv(x);
    EXPECT_NEAR(sum(abs(matmul(matmul(x, p), x) - x)).item(), 0, 1e-13);
  });
  EXPECT_EQ(vector_norm(Tensor::from<float>({0, 3, -2}), 0).item(), 2);
}

TEST_F(Linalg, LeastSquaresOfDependentColumnsIsTheSmallest) {
  const Tensor a = Tensor::from<double>({1, 2, 2, 4, 3, 6}).reshape({3, 2}).requires_grad_();
  const Tensor b = Tensor::from<double>({1, 2, 4}).reshape({3, 1});
  const Tensor y = lstsq(a, b);
  EXPECT_NEAR(y.to_vector<double>()[0], 17. / 70, 1e-12);
  EXPECT_NEAR(y.to_vector<double>()[1], 34. / 70, 1e-12);
  sum(y).backward();
  EXPECT_TRUE(static_cast<bool>(all(isfinite(a.grad()))));
  const Tensor wide = lstsq(a.detach().t(), Tensor::from<double>({1, 2}).reshape({2, 1}));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(wide.to_vector<double>()[i], (i + 1) / 14., 1e-12);
  EXPECT_EQ(lstsq(Tensor::zeros({3, 2}), Tensor::ones({3, 1})).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST_F(Linalg, TheOtherTriangleIsNotRead) {
  each_device([](Device device) {
    const Tensor x = Tensor::from<double>({4, NAN, 2, 5}, {2, 2}).to(device);
    const Tensor same = Tensor::from<double>({4, 2, 2, 5}, {2, 2}).to(device);
    EXPECT_EQ(cholesky(x).to_vector<double>(), cholesky(same).to_vector<double>());
    EXPECT_EQ(eigh(x).values.to_vector<double>(), eigh(same).values.to_vector<double>());
    EXPECT_EQ(eigh(x).vectors.to_vector<double>(), eigh(same).vectors.to_vector<double>());
    const Tensor b = Tensor::from<double>({4, 10}, {2, 1}).to(device);
    EXPECT_EQ(triangular_solve(x, b, false).to_vector<double>(), (std::vector<double>{1, 1.6}));
    EXPECT_EQ(triangular_solve(x.transpose(0, 1), b, true).to_vector<double>(), (std::vector<double>{0, 2}));
    EXPECT_REFUSAL(cholesky(x.transpose(0, 1)), "cholesky: expected finite numbers");
    EXPECT_REFUSAL(eigh(x.transpose(0, 1)), "eigh: expected finite numbers");
    EXPECT_REFUSAL(triangular_solve(x, b, true), "triangular_solve: expected finite numbers");
  });
}

TEST_F(Linalg, EmptyColumns) {
  each_device([](Device device) {
    const Tensor identity = eye(3, DType::f32, device), none = Tensor::zeros({3, 0}, DType::f32, device);
    EXPECT_EQ(solve(identity, none).sizes(), Shape({3, 0}));
    EXPECT_EQ(triangular_solve(identity, none, true).sizes(), Shape({3, 0}));
    EXPECT_REFUSAL(solve(identity * 0, none), "solve: expected invertible matrices");
    const Tensor no_batch = Tensor::zeros({0, 3, 3}, DType::f32, device);
    EXPECT_EQ(solve(no_batch, Tensor::zeros({3, 2}, DType::f32, device)).sizes(), Shape({0, 3, 2}));
  });
}

/// Errors of batches, which name the first matrix: those of the CPU and of a GPU are the same.
TEST_F(Linalg, ErrorsNameTheFirstMatrix) {
  const Tensor good = eye(3) * 2, zero = Tensor::zeros({3, 3}), minus = good - 6 * eye(3);
  const Tensor wrong = where(eye(3, DType::boolean), std::numeric_limits<double>::infinity(), good);
  Tensor late = good.clone();  // a 0 at place 1
  late.select(0, 1).fill_(0);
  const Tensor b = Tensor::ones({3, 3, 2}), of_wrong = where(gt(b.cumsum(0), 1), b, std::nan(""));
  const auto batch = [](const Tensor& x, const Tensor& y, const Tensor& z) { return stack({x, y, z}); };
  const std::vector<std::pair<std::function<void(Device)>, std::string>> calls{
      {[&](Device at) { cholesky(batch(good, minus, zero).to(at)); }, "matrix 1 whose leading minor of order 1 is"},
      {[&](Device at) { cholesky(batch(good, wrong, minus).to(at)); }, "inf or NaN in matrix 1 of f32[3,3,3]"},
      {[&](Device at) { cholesky(batch(good, minus, wrong).to(at)); }, "matrix 1 whose leading minor of order 1 is"},
      {[&](Device at) { solve(batch(good, late, zero).to(at), b.to(at)); }, "matrix 1 that is singular (pivot 2 is 0)"},
      {[&](Device at) { solve(batch(good, good, zero).to(at), of_wrong.to(at)); }, "in matrix 0 of f32[3,3,2]"},
      {[&](Device at) { solve(batch(zero, good, good).to(at), of_wrong.to(at)); }, "matrix 0 that is singular"},
      {[&](Device at) { solve(batch(good, wrong, good).to(at), b.to(at)); }, "in matrix 1 of f32[3,3,3]"},
      {[&](Device at) { triangular_solve(batch(good, late, zero).to(at), b.to(at), false); },
       "matrix 1 with a 0 at place 1"},
      {[&](Device at) { triangular_solve(batch(late, good, good).to(at), of_wrong.to(at), true); },
       "in matrix 0 of f32[3,3,2]"},
      {[&](Device at) { svd(batch(good, wrong, wrong).to(at)); }, "svd: expected finite numbers, got inf or NaN in "},
      {[&](Device at) { eigh(batch(good, good, wrong).to(at)); }, "inf or NaN in matrix 2 of f32[3,3,3]"},
      {[&](Device at) { qr(batch(wrong, good, good).to(at)); }, "inf or NaN in matrix 0 of f32[3,3,3]"},
      {[&](Device at) { det(batch(good, wrong, good).to(at)); },
       "lu: expected finite numbers, got inf or NaN in matrix"}};
  for (const auto& [call, text] : calls) {
    const std::string on_cpu = error_text([&] { call({}); });
    EXPECT_THAT(on_cpu, HasSubstr(text));
    each_device([&](Device device) { EXPECT_EQ(error_text([&] { call(device); }), on_cpu); });
  }
}

TEST_F(Linalg, CusolverComputesOnAGpu) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  if (const std::string& missing = kernels::vendor::cusolver::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Device gpu{DeviceKind::cuda, 0};
  const Tensor x = (eye(3) * 3 + Tensor::ones({3, 3})).to(gpu);
  for (const auto& [name, call] : std::vector<std::pair<const char*, std::function<void()>>>{
           {"svd", [&] { svd(x); }},
           {"eigh", [&] { eigh(x); }},
           {"qr", [&] { qr(x); }},
           {"cholesky", [&] { cholesky(x); }},
           {"lu", [&] { det(x); }},
           {"solve", [&] { solve(x, x); }},
           {"triangular_solve", [&] { triangular_solve(x, x, true); }}}) {
    kernels::note_kernel_variant("");
    call();
    EXPECT_STREQ(kernels::noted_kernel_variant(), "cusolver") << name;
  }
}

TEST_F(Linalg, ACaptureIsRefused) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  const Tensor x = eye(3, DType::f32, {DeviceKind::cuda, 0});
  Graph graph;
  EXPECT_REFUSAL(graph.capture(x.device(), [&] { cholesky(x); }),
                 "cholesky: waits for the device, which a captured step cannot do");
  EXPECT_EQ(cholesky(x).to_vector<float>(), x.to_vector<float>());  // the device works on
}

TEST_F(Linalg, Refusals) {
  const Tensor x = Tensor::ones({2, 3}), square_one = Tensor::ones({2, 2});
  EXPECT_REFUSAL(svd(Tensor::zeros({2, 2}, DType::bf16)),
                 "svd: expected matrices [..., M, N] in f32 or f64, got bf16[2,2] on cpu");
  EXPECT_REFUSAL(svd(Tensor()), "svd: expected matrices [..., M, N] in f32 or f64, got none");
  EXPECT_REFUSAL(qr(Tensor::zeros({4})), "qr: expected matrices [..., M, N] in f32 or f64, got f32[4]");
  EXPECT_REFUSAL(svd(Tensor::zeros({0, 2, 2})), "svd: expected matrices with elements, got f32[0,2,2]");
  for (const auto& call : std::vector<std::pair<const char*, std::function<void()>>>{
           {"eigh", [&] { eigh(x); }},
           {"cholesky", [&] { cholesky(x); }},
           {"inverse", [&] { inverse(x); }},
           {"det", [&] { det(x); }},
           {"slogdet", [&] { slogdet(x); }},
           {"solve", [&] { solve(x, x); }},
           {"triangular_solve", [&] { triangular_solve(x, x, true); }}})
    EXPECT_REFUSAL(call.second(), std::string(call.first) + ": expected square matrices [..., N, N], got f32[2,3]");
  EXPECT_REFUSAL(cholesky(square_one - 2), "cholesky: expected positive-definite matrices, got matrix 0 whose leading");
  EXPECT_REFUSAL(svd(square_one / 0), "svd: expected finite numbers, got inf or NaN in matrix 0 of f32[1,2,2]");
  EXPECT_REFUSAL(solve(square_one, Tensor::ones({3, 1})), "solve: expected b [..., 2, K] for a f32[2,2]");
  EXPECT_REFUSAL(solve(square_one, Tensor::ones({2}, DType::f64)), "solve: expected b in a's dtype on a's device");
  EXPECT_REFUSAL(solve(Tensor::ones({2, 2, 2}), Tensor::ones({3, 2, 1})), "solve: ");
  EXPECT_REFUSAL(triangular_solve(square_one - 1, square_one, true),
                 "triangular_solve: expected no 0 on the diagonal, got matrix 0 with a 0 at place 0");
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Tensor b = Tensor::full({2, 1}, wrong);
    EXPECT_REFUSAL(solve(eye(2), b), "solve: expected finite numbers, got inf or NaN in matrix 0 of f32[1,2,1]");
    EXPECT_REFUSAL(triangular_solve(eye(2), b, true), "triangular_solve: expected finite numbers, got inf or NaN");
  }
  EXPECT_REFUSAL(lstsq(x, Tensor::ones({3, 1})), "lstsq: expected b [..., 2, K] in a's dtype");
  EXPECT_REFUSAL(pinv(x, -1), "pinv: expected a tolerance of at least 0, got -1");
  EXPECT_REFUSAL(matrix_norm(Tensor::zeros({2})), "matrix_norm: expected matrices [..., M, N] in f32 or f64");
  EXPECT_REFUSAL(vector_norm(x, std::nan("")), "vector_norm: expected a floating tensor and an order that is a number");
  EXPECT_REFUSAL(vector_norm(Tensor::zeros({2}, DType::i64)), "vector_norm: expected a floating tensor");
}

}  // namespace
}  // namespace weft::test
