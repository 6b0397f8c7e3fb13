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
/// The root of a a + b b, which neither overflows nor vanishes in between; the gradient at (0, 0) is 0. Errors: not
/// floating.
Tensor hypot(const Tensor& a, const Tensor& b);
/// |a| with b's sign, which -0 has, too. Errors: not floating.
Tensor copysign(const Tensor& a, const Tensor& b);
/// x log y, and 0 where x is 0 unless y is NaN. Errors: not floating.
Tensor xlogy(const Tensor& x, const Tensor& y);
/// x + value a b.
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);
/// x + value a / b.
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);
/// log(x / (1 - x)), the inverse of sigmoid(); with `margin` of x clamped to [margin, 1 - margin]. Errors: not
/// floating, a margin outside of [0, 0.5].
Tensor logit(const Tensor& x, double margin = 0);
/// sin(pi x) / (pi x), and 1 at 0. Errors: not floating.
Tensor sinc(const Tensor& x);
/// maximum() and minimum(), but the other of a and b where one is NaN.
Tensor fmax(const Tensor& a, const Tensor& b);
Tensor fmin(const Tensor& a, const Tensor& b);
/// 1 where x > 0, `at_zero` where x is 0, else 0: without a gradient.
Tensor heaviside(const Tensor& x, const Tensor& at_zero);
/// x - trunc(x). Errors: not floating.
Tensor frac(const Tensor& x);
/// Degrees as radians and the reverse. Integers become f32.
Tensor deg2rad(const Tensor& degrees);
Tensor rad2deg(const Tensor& radians);
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
