// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <numeric>

#include "kernels/half.h"

// The gradient of a strided convolution's input by phases.
//
// With a stride, most taps of a pixel hit no p, and h mod stride alone decides which taps do. So the pixels are sorted
// into stride.h x stride.w *phases*. In the phase a = h mod stride the contributing taps are r = first, first + step,
// …; step = stride / gcd(stride, dilation). Then p = (a + padding - first dilation) / stride + h / stride - i dilation
// / gcd: a convolution of dy with stride 1 and fewer taps. Nothing is multiplied by zero, and a phase without taps
// stores zeros.
//
//   stride 2, 3 x 3, padding 1:     phase (0,0): 1 tap    phase (0,1): 2 taps
//                                   phase (1,0): 2 taps   phase (1,1): 4 taps     together 9, not 4 x 9

namespace weft::kernels::cuda {

/// The taps of a phase along an axis.
struct PhaseTaps {
  int first, count, origin;  ///< origin: the p that tap `first` reaches from the phase's first pixel
};

struct PhaseAxis {
  int size;  ///< H or W
  int taps;  ///< R or S
  int stride, padding, dilation;
  int step, tap;  ///< stride / gcd, -dilation / gcd

  PhaseAxis() = default;
  PhaseAxis(int64_t size_, int64_t taps_, int64_t stride_, int64_t padding_, int64_t dilation_)
      : size(static_cast<int>(size_)),
        taps(static_cast<int>(taps_)),
        stride(static_cast<int>(stride_)),
        padding(static_cast<int>(padding_)),
        dilation(static_cast<int>(dilation_)),
        step(stride / std::gcd(stride, dilation)),
        tap(-(dilation / std::gcd(stride, dilation))) {}

  WEFT_HD PhaseTaps phase(int a) const {
    int first = 0;
    while (first < step && (a + padding - first * dilation) % stride != 0) ++first;
    if (first == step || first >= taps) return {0, 0, 0};
    return {first, (taps - 1 - first) / step + 1, (a + padding - first * dilation) / stride};
  }
};

}  // namespace weft::kernels::cuda
