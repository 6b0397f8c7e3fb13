// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "core/ops/complex.h"

namespace weft {

// Discrete Fourier transforms of f32 and f64: on a CPU computed in f64 by kissfft, on a GPU by cuFFT in x's dtype.
// Without cuFFT the host computes, and waits for the device. Errors: another dtype, no such dimension, a length below
// 1, a build without kissfft.

/// `backward`: the inverse transform is divided by the length n. `forward`: the other one. `ortho`: both, by sqrt(n).
enum class FftNorm { backward, ortho, forward };

struct FftOptions {
  std::optional<int64_t> n = {};  ///< the transform's length: x is cut or gets zeros at its end; none: x's length
  int64_t dim = -1;
  FftNorm norm = FftNorm::backward;
};

/// y[k] = sum over j of x[j] e^(-2 pi i j k / n) along `dim`.
ComplexTensor fft(const ComplexTensor& x, const FftOptions& options = {});
ComplexTensor fft(const Tensor& x, const FftOptions& options = {});
/// The inverse of the above: y[k] = 1/n sum over j of x[j] e^(2 pi i j k / n).
ComplexTensor ifft(const ComplexTensor& x, const FftOptions& options = {});
/// The first n/2 + 1 elements of fft(): the others are their conjugates.
ComplexTensor rfft(const Tensor& x, const FftOptions& options = {});
/// The inverse of rfft(); n is the result's length, 2 (x's - 1) unless given.
Tensor irfft(const ComplexTensor& x, const FftOptions& options = {});

struct FftnOptions {
  std::vector<int64_t> lengths = {};  ///< one per dimension, as FftOptions::n; none: x's
  std::vector<int64_t> dims = {};     ///< none: the last ones that `lengths` names, else all
  FftNorm norm = FftNorm::backward;
};

// Over several dimensions, one after another; rfftn() begins with the last of them and irfftn() ends with the last.

ComplexTensor fftn(const ComplexTensor& x, const FftnOptions& options = {});
ComplexTensor fftn(const Tensor& x, const FftnOptions& options = {});
ComplexTensor ifftn(const ComplexTensor& x, const FftnOptions& options = {});
ComplexTensor rfftn(const Tensor& x, const FftnOptions& options = {});
Tensor irfftn(const ComplexTensor& x, const FftnOptions& options = {});

// Over the last two dimensions, unless `dims` names others.

ComplexTensor fft2(const ComplexTensor& x, const FftnOptions& options = {});
ComplexTensor fft2(const Tensor& x, const FftnOptions& options = {});
ComplexTensor ifft2(const ComplexTensor& x, const FftnOptions& options = {});
ComplexTensor rfft2(const Tensor& x, const FftnOptions& options = {});
Tensor irfft2(const ComplexTensor& x, const FftnOptions& options = {});

/// The frequencies of fft()'s elements in cycles per unit, for samples `spacing` apart: 0, 1, …, -2, -1 over n spacing.
Tensor fftfreq(Integer n, double spacing = 1, DType dtype = DType::f32, Device device = {});
/// rfft()'s frequencies: 0, 1, …, n/2 over n spacing.
Tensor rfftfreq(Integer n, double spacing = 1, DType dtype = DType::f32, Device device = {});

/// x with frequency 0 in the middle of `dims` (none: all), and back.
Tensor fftshift(const Tensor& x, const std::vector<int64_t>& dims = {});
Tensor ifftshift(const Tensor& x, const std::vector<int64_t>& dims = {});
ComplexTensor fftshift(const ComplexTensor& x, const std::vector<int64_t>& dims = {});
ComplexTensor ifftshift(const ComplexTensor& x, const std::vector<int64_t>& dims = {});

}  // namespace weft
