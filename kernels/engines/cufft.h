// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/runtime/queue.h"
#include "kernels/view.h"

// Fourier transforms of the device cuda by cuFFT.

namespace weft::kernels::vendor::cufft {

/// Why cuFFT cannot be used, with the cure; empty where it can.
const std::string& missing();

// The contracts of kernels/contracts/fft.h, computed in the dtype of x. Calls only enqueue, and a captured graph may
// hold them. Errors: cuFFT refuses a plan; OutOfMemory.

void fft_lines(const Queue& queue, const View& y, const View& x, double scale, bool inverse);
void rfft_lines(const Queue& queue, const View& y, const View& x, double scale);
void irfft_lines(const Queue& queue, const View& y, const View& x, double scale);

}  // namespace weft::kernels::vendor::cufft
