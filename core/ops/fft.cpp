// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fft.h"

#include <cmath>
#include <numeric>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "core/ops/rearrange.h"
#include "core/trace.h"
#include "kernels/contracts/fft.h"

namespace weft {
namespace {

/// A dense tensor as [R, n, C], or [R, n, C, 2] for the parts of complex numbers.
Tensor lines(const Tensor& x, int at, bool is_complex) {
  const Shape sizes = x.sizes();
  const int end = sizes.rank() - (is_complex ? 1 : 0);
  int64_t rows = 1, columns = 1;
  for (int d = 0; d < at; ++d) rows *= sizes[d];
  for (int d = at + 1; d < end; ++d) columns *= sizes[d];
  return is_complex ? x.reshape({rows, sizes[at], columns, 2}) : x.reshape({rows, sizes[at], columns});
}

/// Runs `kernel` on lines of a new y and of x.
template <class Kernel>
Tensor transformed(const Tensor& x, const Shape& sizes, int at, bool y_is_complex, bool x_is_complex,
                   const Kernel& kernel) {
  const NoGrad no_grad;
  Tensor y = Tensor::empty(sizes, x.dtype(), x.device());
  if (y.numel() > 0) kernel(y.queue(), lines(y, at, y_is_complex), lines(x.contiguous(), at, x_is_complex));
  return y;
}

/// Transforms parts [..., 2]. The gradient of a transform is the other one with the same factor.
Tensor complex_lines(const Tensor& x, int at, double scale, bool inverse) {
  const Tensor y =
      transformed(x, x.sizes(), at, true, true, [&](const auto& queue, const Tensor& to, const Tensor& from) {
        kernels::fft_lines(queue, to, from, scale, inverse);
      });
  return differentiable(y, inverse ? "ifft" : "fft", {x},
                        [=](const Tensor& dy) { return Grads{complex_lines(dy, at, scale, !inverse)}; });
}

/// Factors [half, 1, …, 1] for parts [..., half, ..., 2]: `inner` for the elements that stand for two, else 1.
Tensor factors(const Tensor& parts, int at, int64_t n, double inner) {
  const int64_t half = n / 2 + 1;
  std::vector<double> values(static_cast<size_t>(half), inner);
  values.front() = 1;
  if (n % 2 == 0) values.back() = 1;
  std::vector<int64_t> sizes(static_cast<size_t>(parts.dim() - at), 1);
  sizes[0] = half;
  return Tensor::from(values, Shape(sizes)).to(parts.dtype()).to(parts.device());
}

Tensor half_to_real(const Tensor& x, int at, int64_t n, double scale);

Tensor real_to_half(const Tensor& x, int at, double scale) {
  const int64_t n = x.size(at);
  Shape sizes = x.sizes();
  sizes[at] = n / 2 + 1;
  std::vector<int64_t> all(sizes.begin(), sizes.end());
  all.push_back(2);
  const Tensor y = transformed(
      x, Shape(all), at, true, false,
      [&](const auto& queue, const Tensor& to, const Tensor& from) { kernels::rfft_lines(queue, to, from, scale); });
  return differentiable(y, "rfft", {x}, [=](const Tensor& dy) {
    return Grads{half_to_real(mul(dy, factors(dy, at, n, 0.5)), at, n, scale)};
  });
}

/// `x`: parts [..., n/2 + 1, ..., 2].
Tensor half_to_real(const Tensor& x, int at, int64_t n, double scale) {
  const Shape sizes = x.sizes();
  std::vector<int64_t> all(sizes.begin(), sizes.end() - 1);
  all[static_cast<size_t>(at)] = n;
  const Tensor y = transformed(
      x, Shape(all), at, false, true,
      [&](const auto& queue, const Tensor& to, const Tensor& from) { kernels::irfft_lines(queue, to, from, scale); });
  return differentiable(y, "irfft", {x}, [=](const Tensor& dy) {
    const Tensor dx = real_to_half(dy, at, scale);
    return Grads{mul(dx, factors(dx, at, n, 2))};
  });
}

/// x cut to n elements along a dimension, or with zeros at its end.
Tensor resized(const Tensor& x, int at, int64_t n) {
  const int64_t size = x.size(at);
  return n == size ? x : n < size ? x.slice(at, 0, n) : pad(x, at, 0, n - size);
}

double scale_of(FftNorm norm, int64_t n, bool inverse) {
  if (norm == FftNorm::ortho) return 1 / std::sqrt(static_cast<double>(n));
  return (norm == FftNorm::forward) != inverse ? 1 / static_cast<double>(n) : 1;
}

void check_real(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && (x.dtype() == DType::f32 || x.dtype() == DType::f64), op, ": expected f32 or f64, got ", x);
}

/// Checks a transform's dimension and length; the length is `known` unless the options have one.
std::pair<int, int64_t> place(const char* op, int rank, const FftOptions& options,
                              const std::function<int64_t(int)>& known) {
  WEFT_CHECK(rank >= 1, op, ": expected at least one dimension, got a single number");
  const int at = wrap_dim(op, options.dim, rank);
  const int64_t n = options.n ? *options.n : known(at);
  WEFT_CHECK(n >= 1, op, ": expected a length of at least 1, got ", n, " for dimension ", options.dim);
  return {at, n};
}

ComplexTensor whole(const char* op, const ComplexTensor& x, const FftOptions& options, bool inverse) {
  WEFT_CHECK(x.defined(), op, ": expected a complex tensor, got none");
  const OpScope scope(op);
  const auto [at, n] = place(op, x.dim(), options, [&](int d) { return x.size(d); });
  return ComplexTensor(complex_lines(resized(x.parts(), at, n), at, scale_of(options.norm, n, inverse), inverse));
}

ComplexTensor as_complex(const char* op, const Tensor& x) {
  check_real(op, x);
  return complex(x, zeros_like(x));
}

/// The options of each dimension of a transform over several.
std::vector<FftOptions> each(const char* op, int rank, const FftnOptions& options, const std::vector<int64_t>& dims) {
  std::vector<int64_t> all = options.dims.empty() ? dims : options.dims;
  if (all.empty()) {
    const auto count = options.lengths.empty() ? rank : static_cast<int64_t>(options.lengths.size());
    for (int64_t d = -count; d < 0; ++d) all.push_back(d);
  }
  WEFT_CHECK(options.lengths.empty() || options.lengths.size() == all.size(), op, ": expected a length for each of ",
             all.size(), " dimensions, got ", options.lengths.size());
  std::vector<FftOptions> result;
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<size_t>(wrap_dim(op, all[i], rank));
    WEFT_CHECK(!seen[at], op, ": expected each dimension once, got ", all[i], " twice");
    seen[at] = true;
    FftOptions one{.dim = all[i], .norm = options.norm};
    if (!options.lengths.empty()) one.n = options.lengths[i];
    result.push_back(one);
  }
  WEFT_CHECK(!result.empty(), op, ": expected at least one dimension, got a single number");
  return result;
}

const std::vector<int64_t> kLastTwo{-2, -1};

ComplexTensor over(const char* op, ComplexTensor x, const FftnOptions& options, const std::vector<int64_t>& dims,
                   bool inverse) {
  WEFT_CHECK(x.defined(), op, ": expected a complex tensor, got none");
  const std::vector<FftOptions> all = each(op, x.dim(), options, dims);
  for (size_t i = all.size(); i-- > 0;) x = whole(op, x, all[i], inverse);
  return x;
}

ComplexTensor real_over(const char* op, const Tensor& x, const FftnOptions& options, const std::vector<int64_t>& dims) {
  check_real(op, x);
  const std::vector<FftOptions> all = each(op, x.dim(), options, dims);
  ComplexTensor y = rfft(x, all.back());
  for (size_t i = all.size() - 1; i-- > 0;) y = whole(op, y, all[i], false);
  return y;
}

Tensor to_real_over(const char* op, ComplexTensor x, const FftnOptions& options, const std::vector<int64_t>& dims) {
  WEFT_CHECK(x.defined(), op, ": expected a complex tensor, got none");
  const std::vector<FftOptions> all = each(op, x.dim(), options, dims);
  for (size_t i = 0; i + 1 < all.size(); ++i) x = whole(op, x, all[i], true);
  return irfft(x, all.back());
}

Tensor shifted(const char* op, Tensor x, int rank, const std::vector<int64_t>& dims, bool back) {
  std::vector<int64_t> all = dims;
  if (all.empty()) {
    all.resize(static_cast<size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
  }
  for (const int64_t d : all) {
    const int at = wrap_dim(op, d, rank);
    const int64_t half = x.size(at) / 2;
    x = roll(x, back ? -half : half, at);
  }
  return x;
}

void check_frequencies(const char* op, int64_t n, double spacing, DType dtype) {
  WEFT_CHECK(n >= 1 && spacing != 0 && std::isfinite(spacing) && is_floating(dtype), op,
             ": expected at least one element, a finite spacing other than 0 and a floating dtype, got ", n, ", ",
             spacing, " and ", dtype);
}

}  // namespace

ComplexTensor fft(const ComplexTensor& x, const FftOptions& options) { return whole("fft", x, options, false); }
ComplexTensor fft(const Tensor& x, const FftOptions& options) { return fft(as_complex("fft", x), options); }
ComplexTensor ifft(const ComplexTensor& x, const FftOptions& options) { return whole("ifft", x, options, true); }

ComplexTensor rfft(const Tensor& x, const FftOptions& options) {
  check_real("rfft", x);
  const OpScope scope("rfft");
  const auto [at, n] = place("rfft", x.dim(), options, [&](int d) { return x.size(d); });
  return ComplexTensor(real_to_half(resized(x, at, n), at, scale_of(options.norm, n, false)));
}

Tensor irfft(const ComplexTensor& x, const FftOptions& options) {
  WEFT_CHECK(x.defined(), "irfft: expected a complex tensor, got none");
  const OpScope scope("irfft");
  const auto [at, n] = place("irfft", x.dim(), options, [&](int d) { return 2 * (x.size(d) - 1); });
  return half_to_real(resized(x.parts(), at, n / 2 + 1), at, n, scale_of(options.norm, n, true));
}

ComplexTensor fftn(const ComplexTensor& x, const FftnOptions& options) { return over("fftn", x, options, {}, false); }
ComplexTensor fftn(const Tensor& x, const FftnOptions& options) { return fftn(as_complex("fftn", x), options); }
ComplexTensor ifftn(const ComplexTensor& x, const FftnOptions& options) { return over("ifftn", x, options, {}, true); }
ComplexTensor rfftn(const Tensor& x, const FftnOptions& options) { return real_over("rfftn", x, options, {}); }
Tensor irfftn(const ComplexTensor& x, const FftnOptions& options) { return to_real_over("irfftn", x, options, {}); }

ComplexTensor fft2(const ComplexTensor& x, const FftnOptions& options) {
  return over("fft2", x, options, kLastTwo, false);
}
ComplexTensor fft2(const Tensor& x, const FftnOptions& options) { return fft2(as_complex("fft2", x), options); }
ComplexTensor ifft2(const ComplexTensor& x, const FftnOptions& options) {
  return over("ifft2", x, options, kLastTwo, true);
}
ComplexTensor rfft2(const Tensor& x, const FftnOptions& options) { return real_over("rfft2", x, options, kLastTwo); }
Tensor irfft2(const ComplexTensor& x, const FftnOptions& options) {
  return to_real_over("irfft2", x, options, kLastTwo);
}

Tensor fftfreq(Integer n, double spacing, DType dtype, Device device) {
  check_frequencies("fftfreq", n, spacing, dtype);
  std::vector<double> values;
  for (int64_t k = 0; k < n; ++k)
    values.push_back(static_cast<double>(k < (n + 1) / 2 ? k : k - n) / (static_cast<double>(n) * spacing));
  return Tensor::from(values).to(dtype).to(device);
}

Tensor rfftfreq(Integer n, double spacing, DType dtype, Device device) {
  check_frequencies("rfftfreq", n, spacing, dtype);
  std::vector<double> values;
  for (int64_t k = 0; k <= n / 2; ++k) values.push_back(static_cast<double>(k) / (static_cast<double>(n) * spacing));
  return Tensor::from(values).to(dtype).to(device);
}

Tensor fftshift(const Tensor& x, const std::vector<int64_t>& dims) {
  return shifted("fftshift", x, x.dim(), dims, false);
}
Tensor ifftshift(const Tensor& x, const std::vector<int64_t>& dims) {
  return shifted("ifftshift", x, x.dim(), dims, true);
}
ComplexTensor fftshift(const ComplexTensor& x, const std::vector<int64_t>& dims) {
  return ComplexTensor(shifted("fftshift", x.parts(), x.dim(), dims, false));
}
ComplexTensor ifftshift(const ComplexTensor& x, const std::vector<int64_t>& dims) {
  return ComplexTensor(shifted("ifftshift", x.parts(), x.dim(), dims, true));
}

}  // namespace weft
