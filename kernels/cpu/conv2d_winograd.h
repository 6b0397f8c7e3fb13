// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"
#include "kernels/cpu/winograd_kernels.h"

namespace weft::kernels::cpu {

/// Whether Winograd's convolution computes this one, and faster than the direct sum: f32, 3x3 filters, stride 1, enough
/// channels, and tiles that are mostly full.
bool suits_winograd(const View& y, const View& x, const View& w, const Conv2dArguments& arguments);

/// The loops for this processor.
const WinogradKernels& winograd_kernels();

// Convolutions of 3x3 filters by F(4x4, 3x3): any sizes of f32, stride and dilation 1, one group, at most 2 of padding.
// A sum of K terms errs by at most (K + 40) 2^-24 times the magnitudes' sum, both through Winograd's
// transforms (tests/kernels/conv2d_winograd.cpp). On random numbers its error is about a direct f32 sum's
// (benchmarks/results/2026-11-26-numbers.md). Infinity or NaN in a patch spreads over its tile's outputs. The bits do
// not depend on the number of threads.
void winograd_conv2d_forward(const View& y, const View& x, const View& w, const View& bias, Size2d padding,
                             const WinogradKernels& kernels = winograd_kernels());
void winograd_conv2d_backward_input(const View& dx, const View& dy, const View& w, Size2d padding,
                                    const WinogradKernels& kernels = winograd_kernels());
void winograd_conv2d_backward_weight(const View& dw, const View& dy, const View& x, Size2d padding,
                                     const WinogradKernels& kernels = winograd_kernels());

}  // namespace weft::kernels::cpu
