// SPDX-License-Identifier: Apache-2.0
// Complex numbers and Fourier transforms.
#include "core/ops/fft.h"

#include <cmath>
#include <numbers>
#include <sstream>

#include "core/graph.h"
#include "core/ops/concat.h"
#include "core/ops/unary.h"
#include "kernels/engines/cufft.h"
#include "tests/ops/op_case.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

using testing::HasSubstr;

#define EXPECT_REFUSAL(call, text) EXPECT_THAT(error_text([&] { call; }), HasSubstr(text))

/// A case in f32 and f64.
OpCase wide(std::string name, std::vector<OpInput> inputs, OpFunction function, std::string torch,
            std::vector<std::string> ops = {}) {
  const bool lacks = !WEFT_HAVE_KISSFFT && name.find("fft") != std::string::npos;
  return {std::move(name), std::move(inputs),  std::move(function), std::move(torch),      60,
          false,           Derivative::smooth, std::move(ops),      lacks ? "kissfft" : ""};
}

/// A case without a gradient.
OpCase numbers(std::string name, OpFunction function, std::string torch) {
  return {std::move(name), {{{2}}}, std::move(function), std::move(torch), 1, false, Derivative::none};
}

ComplexTensor z(const Tensor& parts) { return view_as_complex(parts); }
Tensor parts(const ComplexTensor& z) { return z.parts(); }

Tensor viewed(const ComplexTensor& a) {
  return parts(
      concat({pad(a, -1, 1, 0).squeeze(1).reshape({2, -1}), a.select(0, 1).expand({2, 2, 4}).reshape({2, 8})}, 1));
}

// clang-format off
const AddCases complex_cases{
    wide("complex", {{{3, 4}}, {{4}}}, BOTH(parts(complex(x[0], x[1])))),
    wide("polar", {{{3, 4}, Values::positive}, {{3, 4}}}, BOTH(parts(polar(x[0], x[1])))),
    wide("polar_negative", {{{3, 4}}, {{3, 4}}}, CALL(parts(polar(x[0], x[1]))),
     "# gives a negative size no slope of its own"),
    wide("view_as_real", {{{3, 2}}}, BOTH(view_as_real(view_as_complex(x[0]))), {"view_as_real", "view_as_complex"}),
    wide("real", {{{3, 2}}}, BOTH(real(z(x[0])))),
    wide("imag", {{{3, 2}}}, BOTH(imag(z(x[0])))),
    wide("conj", {{{3, 2}}}, BOTH(parts(conj(z(x[0]))))),
    wide("complex_abs", {{{3, 2}}}, BOTH(abs(z(x[0])))),
    wide("complex_exp", {{{3, 2}}}, BOTH(parts(exp(z(x[0]))))),
    wide("complex_add", {{{3, 2}}, {{1, 2}}}, BOTH(parts(z(x[0]) + z(x[1]) - neg(z(x[1])) * 3))),
    wide("complex_add_real", {{{3, 4, 2}}, {{4}}}, BOTH(parts((z(x[0]) + x[1]) * (x[1] - z(x[0]) - (x[1] + x[1]))))),
    wide("complex_sub_real", {{{4, 2}}, {{3, 4}}}, BOTH(parts(z(x[0]) - x[1]))),
    wide("complex_index", {{{3, 4, 2}}}, CALL(parts(z(x[0])[{ellipsis, Slice{1, 3}}][0] + z(x[0])[{-1, 2}])),
     "parts(z(x[0])[..., 1:3][0] + z(x[0])[-1, 2])"),
    wide("complex_sum", {{{3, 4, 2}}}, CALL(parts(sum(z(x[0]), {-1}, true) * sum(z(x[0])))),
     "parts(z(x[0]).sum(-1, True) * z(x[0]).sum())"),
    wide("complex_mean", {{{3, 4, 2}}}, CALL(parts(mean(z(x[0]), {0}) + mean(mean(z(x[0]))))),
     "parts(z(x[0]).mean(0) + z(x[0]).mean())"),
    wide("complex_mul", {{{3, 4, 2}}, {{4, 2}}}, BOTH(parts(z(x[0]) * z(x[1])))),
    wide("complex_mul_real", {{{3, 4, 2}}, {{4}}}, BOTH(parts(z(x[0]) * x[1]))),
    wide("complex_div", {{{3, 4, 2}}, {{4, 2}, Values::positive}}, BOTH(parts(z(x[0]) / z(x[1])))),
    wide("complex_matmul", {{{2, 3, 4, 2}}, {{4, 5, 2}}}, BOTH(parts(matmul(z(x[0]), z(x[1]))))),
    wide("complex_einsum", {{{2, 3, 4, 2}}, {{3, 4, 5, 2}}}, BOTH(parts(einsum("nhc,hcd->nhd", z(x[0]), z(x[1]))))),
    wide("complex_views", {{{2, 3, 4, 2}}},
     CALL(viewed(z(x[0]).permute({2, 0, 1}).transpose(0, -1).slice(0, 1, 2).unsqueeze(1).contiguous())),
     "(lambda a: parts(concat([F.pad(a, (1, 0)).squeeze(1).reshape(2, -1), a[1].expand(2, 2, 4).reshape(2, 8)], 1)))"
     "(z(x[0]).permute(2, 0, 1).transpose(0, -1)[1:3].unsqueeze(1))")};

const AddCases fft_cases{
    wide("fft", {{{2, 6, 3, 2}}}, CALL(fft(z(x[0]), {.dim = 1}).parts()), "parts(fft.fft(z(x[0]), dim=1))"),
    wide("fft_real", {{{5, 7}}}, CALL(fft(x[0], {.norm = FftNorm::ortho}).parts()),
     "parts(fft.fft(x[0], norm='ortho'))"),
    wide("fft_prime", {{{2, 53, 2}}}, CALL(fft(z(x[0])).parts()), "parts(fft.fft(z(x[0])))"),
    wide("fft_cut", {{{3, 9, 2}}}, CALL(fft(z(x[0]), {.n = 5, .norm = FftNorm::forward}).parts()),
     "parts(fft.fft(z(x[0]), 5, norm='forward'))"),
    wide("ifft", {{{3, 8, 2}}}, CALL(ifft(z(x[0]), {.n = 10}).parts()), "parts(fft.ifft(z(x[0]), 10))"),
    wide("ifft_ortho", {{{2, 7, 3, 2}}}, CALL(ifft(z(x[0]), {.n = 6, .dim = 1, .norm = FftNorm::ortho}).parts()),
         "parts(fft.ifft(z(x[0]), 6, 1, 'ortho'))"),
    wide("ifft_forward", {{{2, 7, 3, 2}}}, CALL(ifft(z(x[0]), {.dim = 1, .norm = FftNorm::forward}).parts()),
         "parts(fft.ifft(z(x[0]), dim=1, norm='forward'))"),
    wide("ifftn_ortho", {{{2, 3, 4, 2}}}, CALL(ifftn(z(x[0]), {.norm = FftNorm::ortho}).parts()),
         "parts(fft.ifftn(z(x[0]), norm='ortho'))"),
    wide("rfft", {{{2, 8, 3}}}, CALL(rfft(x[0], {.dim = -2}).parts()), "parts(fft.rfft(x[0], dim=-2))"),
    wide("rfft_odd", {{{2, 9}}}, CALL(rfft(x[0], {.norm = FftNorm::forward}).parts()),
     "parts(fft.rfft(x[0], norm='forward'))"),
    wide("rfft_long", {{{2, 7}}}, CALL(rfft(x[0], {.n = 106}).parts()), "parts(fft.rfft(x[0], 106))"),
    wide("irfft", {{{2, 5, 3, 2}}}, CALL(irfft(z(x[0]), {.dim = 1})), "fft.irfft(z(x[0]), dim=1)"),
    wide("irfft_odd", {{{2, 5, 2}}}, CALL(irfft(z(x[0]), {.n = 9, .norm = FftNorm::ortho})),
     "fft.irfft(z(x[0]), 9, norm='ortho')"),
    wide("irfft_cut", {{{2, 9, 2}}}, CALL(irfft(z(x[0]), {.n = 7})), "fft.irfft(z(x[0]), 7)"),
    wide("fft2", {{{2, 4, 5, 2}}}, CALL(fft2(z(x[0])).parts()), "parts(fft.fft2(z(x[0])))"),
    wide("fft2_real", {{{4, 5}}}, CALL(fft2(x[0]).parts()), "parts(fft.fft2(x[0]))"),
    wide("ifft2", {{{2, 4, 5, 2}}}, CALL(ifft2(z(x[0]), {.lengths = {3, 6}}).parts()),
     "parts(fft.ifft2(z(x[0]), (3, 6)))"),
    wide("rfft2", {{{2, 4, 6}}}, CALL(rfft2(x[0], {.norm = FftNorm::ortho}).parts()),
     "parts(fft.rfft2(x[0], norm='ortho'))"),
    wide("irfft2", {{{2, 4, 4, 2}}}, CALL(irfft2(z(x[0]), {.lengths = {4, 7}})), "fft.irfft2(z(x[0]), (4, 7))"),
    wide("fftn", {{{2, 3, 4, 2}}}, CALL(fftn(z(x[0])).parts()), "parts(fft.fftn(z(x[0])))"),
    wide("fftn_real", {{{2, 3, 4}}}, CALL(fftn(x[0], {.lengths = {3, 3}}).parts()), "parts(fft.fftn(x[0], (3, 3)))"),
    wide("ifftn", {{{2, 3, 4, 2}}}, CALL(ifftn(z(x[0]), {.dims = {2, 0}}).parts()),
     "parts(fft.ifftn(z(x[0]), dim=(2, 0)))"),
    wide("rfftn", {{{2, 3, 4}}}, CALL(rfftn(x[0]).parts()), "parts(fft.rfftn(x[0]))"),
    wide("irfftn", {{{2, 3, 3, 2}}}, CALL(irfftn(z(x[0]), {.norm = FftNorm::forward})),
     "fft.irfftn(z(x[0]), norm='forward')"),
    wide("fftshift", {{{3, 4}}},
     CALL(concat({fftshift(x[0]), fftshift(z(x[0].reshape({3, 2, 2})), {0}).parts().reshape({3, 4})})),
     "concat([fft.fftshift(x[0]), parts(fft.fftshift(z(x[0].reshape(3, 2, 2)), 0)).reshape(3, 4)])"),
    wide("ifftshift", {{{3, 4}}},
     CALL(concat({ifftshift(x[0]), ifftshift(z(x[0].reshape({3, 2, 2})), {0}).parts().reshape({3, 4})})),
     "concat([fft.ifftshift(x[0]), parts(fft.ifftshift(z(x[0].reshape(3, 2, 2)), 0)).reshape(3, 4)])"),
    numbers("fftfreq", CALL(fftfreq(5, 0.5, x[0].dtype(), x[0].device())), "fft.fftfreq(5, 0.5)"),
    numbers("rfftfreq", CALL(rfftfreq(6, 2, x[0].dtype(), x[0].device())), "fft.rfftfreq(6, 2)")};
// clang-format on

TEST(Complex, PrintsAndReads) {
  const ComplexTensor a = complex(Tensor::from<double>({1, -2.5}), Tensor::from<double>({0.25, -1}));
  std::ostringstream out;
  out << a;
  EXPECT_EQ(out.str(), "complex128[2] on cpu [1+0.25i, -2.5-1i]");
  EXPECT_EQ(a.select(0, 1).item(), std::complex<double>(-2.5, -1));
  EXPECT_EQ(ComplexTensor(Tensor::zeros({3, 2})).description(), "complex64[3] on cpu");
  EXPECT_EQ(ComplexTensor().description(), "none");
  EXPECT_EQ(a.to(DType::f32).dtype(), DType::f32);
}

TEST(Complex, SizesAndQuotientsNeitherOverflowNorVanish) {
  for (const double size : {1e-200, 1e200}) {
    const ComplexTensor b = complex(Tensor::from<double>({3 * size}), Tensor::from<double>({-4 * size}));
    EXPECT_DOUBLE_EQ(abs(b).item(), 5 * size);
    const std::complex<double> one = (b / b).item();
    EXPECT_NEAR(one.real(), 1, 1e-15);
    EXPECT_NEAR(one.imag(), 0, 1e-15);
  }
  const Tensor zero = Tensor::zeros({1, 2}, DType::f64);
  EXPECT_TRUE(std::isnan((ComplexTensor(zero) / ComplexTensor(zero)).item().real()));
}

TEST(Complex, Refusals) {
  EXPECT_REFUSAL(view_as_complex(Tensor::zeros({3})), "complex: expected parts [..., 2], got f32[3] on cpu");
  EXPECT_REFUSAL(view_as_complex(Tensor::zeros({3, 2}, DType::bf16)), "complex: expected f32 or f64, got bf16[3,2]");
  EXPECT_REFUSAL(complex(Tensor::zeros({3}), Tensor::zeros({2})), "complex: ");
  EXPECT_REFUSAL(complex(Tensor(), Tensor::zeros({2})), "complex: expected f32 or f64, got none");
  EXPECT_REFUSAL(polar(Tensor::zeros({3}, DType::i64), Tensor::zeros({3})), "polar: expected f32 or f64, got i64[3]");
  const ComplexTensor two(Tensor::zeros({2, 2}));
  EXPECT_REFUSAL(two.item(), "item: expected one element, got complex64[2] on cpu");
  EXPECT_REFUSAL(two.transpose(0, 1), "transpose: ");
  EXPECT_REFUSAL(concat(std::vector<ComplexTensor>{}), "concat: expected at least one tensor");
  EXPECT_REFUSAL(mul(two, Tensor::zeros({2}, DType::i64)), "mul: expected f32 or f64, got i64[2]");
  EXPECT_REFUSAL(two + Tensor::zeros({2}, DType::i64), "add: expected f32 or f64, got i64[2]");
  EXPECT_REFUSAL(Tensor() - two, "add: expected f32 or f64, got none");
  EXPECT_REFUSAL(two[2], "select: index 2 is outside dimension 0");
  EXPECT_REFUSAL((two[{0, 0}]), "index: ");
  EXPECT_REFUSAL(sum(two, {1}), "sum: ");
}

/// y[k] = sum over j of x[j] e^(-+2 pi i j k / n), as it stands.
std::vector<std::complex<double>> slow(const std::vector<std::complex<double>>& x, double sign) {
  const size_t n = x.size();
  std::vector<std::complex<double>> y(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j)
      y[k] +=
          x[j] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  return y;
}

TEST(Fourier, EqualsTheSumOfEachLength) {
  if (!WEFT_HAVE_KISSFFT) GTEST_SKIP() << "needs a build with kissfft; this one has its stub";
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 30, 49, 51, 53, 97, 106, 128, 211, 318}) {
    std::vector<double> parts;
    for (int64_t i = 0; i < 2 * n; ++i) parts.push_back(std::sin(static_cast<double>(i * i % 97)));
    const ComplexTensor x(Tensor::from(parts, {n, 2}));
    const auto near = [&](const ComplexTensor& y, const std::vector<std::complex<double>>& wanted, const char* what) {
      const auto got = y.to_vector();
      for (size_t k = 0; k < got.size(); ++k)
        EXPECT_LE(std::abs(got[k] - wanted[k]), 1e-13 * static_cast<double>(n)) << what << ' ' << n << " at " << k;
    };
    near(fft(x), slow(x.to_vector(), -1), "fft");
    near(ifft(x, {.norm = FftNorm::forward}), slow(x.to_vector(), 1), "ifft");
    const Tensor whole = real(x).contiguous();
    near(rfft(whole), slow(complex(whole, zeros_like(whole)).to_vector(), -1), "rfft");
    const std::vector<double> back = irfft(rfft(whole), {.n = n}).to_vector<double>(),
                              wanted = whole.to_vector<double>();
    for (size_t j = 0; j < back.size(); ++j) EXPECT_NEAR(back[j], wanted[j], 1e-14) << "irfft " << n;
  }
}

TEST(Fourier, ACapturedGraphHoldsTransforms) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  if (const std::string& missing = kernels::vendor::cufft::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6}).to({DeviceKind::cuda, 0}), y = zeros_like(x);
  Graph graph;
  graph.capture(x.device(), [&] { y.copy_(irfft(rfft(x) * 2.0, {.n = 6})); });
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(6)) << "a capture runs nothing";
  graph.replay();
  EXPECT_THAT(y.to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-5F), {2, 4, 6, 8, 10, 12}));
}

TEST(Fourier, Empty) { EXPECT_EQ(rfft(Tensor::zeros({0, 8})).sizes(), Shape({0, 5})); }

TEST(Fourier, Refusals) {
  const Tensor x = Tensor::zeros({4, 6});
  EXPECT_REFUSAL(rfft(Tensor::zeros({4}, DType::bf16)), "rfft: expected f32 or f64, got bf16[4] on cpu");
  EXPECT_REFUSAL(fft(Tensor::zeros({4}, DType::i64)), "fft: expected f32 or f64, got i64[4] on cpu");
  EXPECT_REFUSAL(fft(ComplexTensor()), "fft: expected a complex tensor, got none");
  EXPECT_REFUSAL(irfft(ComplexTensor()), "irfft: expected a complex tensor, got none");
  EXPECT_REFUSAL(rfft(x, {.n = 0}), "rfft: expected a length of at least 1, got 0 for dimension -1");
  EXPECT_REFUSAL(rfft(x, {.dim = 2}), "rfft: ");
  EXPECT_REFUSAL(rfft(Tensor::zeros({})), "rfft: expected at least one dimension, got a single number");
  EXPECT_REFUSAL(irfft(ComplexTensor(Tensor::zeros({1, 2}))), "irfft: expected a length of at least 1, got 0");
  EXPECT_REFUSAL(rfftn(x, {.lengths = {2}, .dims = {0, 1}}),
                 "rfftn: expected a length for each of 2 dimensions, got 1");
  EXPECT_REFUSAL(fftn(x, {.dims = {0, -2}}), "fftn: expected each dimension once, got -2 twice");
  EXPECT_REFUSAL(fftn(Tensor::zeros({})), "fftn: expected at least one dimension, got a single number");
  EXPECT_REFUSAL(irfft2(ComplexTensor()), "irfft2: expected a complex tensor, got none");
  EXPECT_REFUSAL(fft2(Tensor::zeros({3})), "fft2: ");
  EXPECT_REFUSAL(fftfreq(0), "fftfreq: expected at least one element, a finite spacing other than 0");
  EXPECT_REFUSAL(rfftfreq(4, 0), "rfftfreq: expected at least one element, a finite spacing other than 0");
}

}  // namespace
}  // namespace weft::test
