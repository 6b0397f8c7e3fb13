// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// Discrete Fourier transforms of length n along the middle of three dimensions, in f32 or f64, dense. A complex number
// is a last dimension of two: the real part and the imaginary part. w = e^(-2 pi i / n). The CPU computes in f64, cuFFT
// in the dtype of x; without cuFFT the host computes for the device cuda.

/// y[r, k, c] = scale sum over j of x[r, j, c] w^(jk), or w^(-jk) if `inverse`; y and x are complex [R, n, C, 2].
WEFT_KERNEL(fft_lines, const Queue& queue, const View& y, const View& x, double scale, bool inverse);

/// The first n/2 + 1 elements of the above for a real x [R, n, C]: y is [R, n/2 + 1, C, 2].
WEFT_KERNEL(rfft_lines, const Queue& queue, const View& y, const View& x, double scale);

/// The inverse: x is [R, n/2 + 1, C, 2], and the other elements are the conjugates. y is real [R, n, C]. The imaginary
/// parts of element 0 and (n even) n/2 count for nothing.
WEFT_KERNEL(irfft_lines, const Queue& queue, const View& y, const View& x, double scale);

}  // namespace weft::kernels
