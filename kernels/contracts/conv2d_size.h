// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"

namespace weft::kernels {

/// The output sizes [P, Q] of a convolution of [H, W] with a kernel [R, S]; 0 if the kernel is larger than the padded
/// input.
inline Size2d conv2d_output_size(Size2d input, Size2d kernel, const Conv2dArguments& arguments) {
  const auto along = [](int64_t in, int64_t taps, int64_t stride, int64_t padding, int64_t dilation) {
    const int64_t room = in + 2 * padding - dilation * (taps - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  };
  const auto& [stride, padding, dilation, groups] = arguments;
  return {along(input.h, kernel.h, stride.h, padding.h, dilation.h),
          along(input.w, kernel.w, stride.w, padding.w, dilation.w)};
}

}  // namespace weft::kernels
