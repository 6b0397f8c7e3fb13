// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/tensor.h"

namespace weft {

// Functions of two tensors, element by element and with broadcasting. Errors: undefined tensors, two devices, sizes
// that do not broadcast, and those named below.

/// The angle of the point (b, a), from -pi to pi; the gradient at (0, 0) is 0. Integers become f32.
Tensor atan2(const Tensor& a, const Tensor& b);
/// a - b trunc(a / b), which has a's sign; remainder(): a - b floor(a / b), which has b's sign. Integers stay
/// integers, and leave 0 of b = 0; a floating b = 0 leaves NaN.
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, Number b);
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, Number b);
/// a + weight (b - a).
Tensor lerp(const Tensor& a, const Tensor& b, Number weight);
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
/// log(e^a + e^b) without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
/// x with numbers in place of NaN and the infinities; none: the dtype's largest and smallest. Errors: not floating.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> infinity = {},
                  std::optional<double> negative_infinity = {});

/// |a - b| <= absolute + relative |b|, and true for equal infinities; NaN is close to nothing.
Tensor isclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);
/// Whether all are; waits for the device.
bool allclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);
/// Whether sizes and all elements are equal; waits for the device.
bool equal(const Tensor& a, const Tensor& b);

}  // namespace weft
