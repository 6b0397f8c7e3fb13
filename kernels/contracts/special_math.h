// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "kernels/contracts/special.h"
#include "kernels/half.h"

// The functions of kernels/contracts/special.h in f64, one for every device: within a few units in the last place.

namespace weft::kernels {

inline constexpr double kPi = 3.14159265358979323846;

/// The inverse of erf: Winitzki's formula (2008), which is right to 0.2%, and three steps of Halley's method. Each
/// step cubes the error. Near 1 the error is a difference of erfc, whose digits erf does not have.
WEFT_HD double erf_inverse(double y) {
  const double size = std::fabs(y);
  if (!(size < 1)) return size == 1 ? y / (1 - size) : std::sqrt(-size);  // NaN beyond 1
  constexpr double kA = 0.147;
  const double log = std::log1p(-size * size), half = 2 / (kPi * kA) + 0.5 * log, rest = -log / kA;
  double x = std::sqrt(rest / (std::sqrt(half * half + rest) + half));
  for (int step = 0; step < 3; ++step) {
    const double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
    const double newton = error / (1.12837916709551257390 * std::exp(-x * x));
    x -= newton / (1 + x * newton);
  }
  return y < 0 ? -x : x;
}

/// (x + 0)^-s + (x + 1)^-s + …, Hurwitz's zeta function for x > 0 and a whole s > 1, by Euler's and Maclaurin's
/// formula.
WEFT_HD double hurwitz_zeta(double s, double x) {
  // B_2k / (2k)!
  constexpr double kFactors[] = {1. / 12,
                                 -1. / 720,
                                 1. / 30240,
                                 -1. / 1209600,
                                 1. / 47900160,
                                 -691. / 1307674368000,
                                 1. / 74724249600,
                                 -3617. / 10670622842880000,
                                 43867. / 5109094217170944000};
  double sum = 0;
  for (const double far = s + 10; x < far; x += 1) sum += std::pow(x, -s);
  const double last = std::pow(x, -s);
  sum += std::pow(x, 1 - s) / (s - 1) + 0.5 * last;
  double term = last * s / x;  // s (s + 1) … (s + 2k - 2) x^(-s - 2k + 1)
  double place = s;
  for (const double factor : kFactors) {
    sum += factor * term;
    term *= (place + 1) * (place + 2) / (x * x);
    place += 2;
  }
  return sum;
}

/// The slope of lgamma: its asymptotic series from 10 on, steps of one to there, and the reflection of negative x.
WEFT_HD double digamma(double x) {
  if (x == 0) return -1 / x;
  double sum = 0;
  if (x < 0) {
    const double part = x - std::floor(x);
    if (part == 0) return (x - x) / part;  // a pole with two signs: NaN
    sum = part == 0.5 ? 0 : -kPi / std::tan(kPi * part);
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  // B_2k / 2k
  constexpr double kFactors[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                 1. / 132, -691. / 32760, 1. / 12,  -3617. / 8160};
  const double square = 1 / (x * x);
  double power = square, series = 0;
  for (const double factor : kFactors) {
    series += factor * power;
    power *= square;
  }
  return sum + std::log(x) - 0.5 / x - series;
}

/// Derivative `order` + 1 of lgamma: (-1)^(n + 1) n! zeta(n + 1, x). Left of 0 the terms before 1 are a second sum.
WEFT_HD double polygamma(int order, double x) {
  if (order == 0) return digamma(x);
  const double s = order + 1, sign = order % 2 ? 1 : -1;
  double zeta;
  if (x > 0) {
    zeta = hurwitz_zeta(s, x);
  } else {
    const double part = x - std::floor(x);
    if (part == 0) return sign > 0 ? 1 / part : part / part;  // a pole, with two signs where n is even
    const double left = hurwitz_zeta(s, 1 - part) - hurwitz_zeta(s, 1 - x);
    zeta = hurwitz_zeta(s, part) + (order % 2 ? left : -left);
  }
  return sign * std::tgamma(s) * zeta;
}

/// y = f(x). `Math::lgamma` is the device's.
template <class Math>
WEFT_HD double special_value(Special f, double x, int order) {
  switch (f) {
    case Special::erfc:
      return std::erfc(x);
    case Special::erfinv:
      return erf_inverse(x);
    case Special::lgamma:
      return Math::lgamma(x);
    case Special::polygamma:
      return polygamma(order, x);
  }
  return 0;
}

}  // namespace weft::kernels
