// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::kernels::cpu {

/// exp, expm1, log, log1p, tanh and erf without branches or calls in f32, so that a loop over them vectorises; f64 is
/// the C library's. Errors, against f64 over all f32 inputs (tests/kernels/vector_math.cpp): at most 2 units in the
/// last place, subnormal results included. Infinities, zeros and NaN as in C. Each polynomial is a minimax fit of the
/// named function by Lawson's iteration on Chebyshev nodes. Always inlined: these functions are compiled for several
/// instruction sets.
struct VectorMath {
  static double exp(double x) { return std::exp(x); }
  static double log(double x) { return std::log(x); }
  static double log1p(double x) { return std::log1p(x); }
  static double expm1(double x) { return std::expm1(x); }
  static double tanh(double x) { return std::tanh(x); }
  static double erf(double x) { return std::erf(x); }

  [[gnu::always_inline]] static float exp(float x) {
    // Beyond these the result is 0 or infinity; NaN passes both comparisons.
    const Exponential e = exponential(x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x);
    // 2^n in two factors, as the exponents of the smallest and the largest results do not fit into one.
    const int32_t half = e.n >> 1;
    return (1.0f + e.rest) * power_of_two(half) * power_of_two(e.n - half);
  }

  /// 2^n (e^r - 1) + (2^n - 1), n and r as exponential() has them.
  [[gnu::always_inline]] static float expm1(float x) {
    const Exponential e = exponential(x < -18.0f ? -18.0f : x > 89.0f ? 89.0f : x);
    const float half = power_of_two(e.n - 1);  // 2^128 does not exist
    const float value = 2.0f * (half * e.rest + (half - 0.5f));
    return x == 0.0f ? x : value;
  }

  /// log u + (x - (u - 1)) / u with u = 1 + x, whose rounding the second term makes good.
  [[gnu::always_inline]] static float log1p(float x) {
    const float u = 1.0f + x, first = log(u), value = first + (x - (u - 1.0f)) / u;
    return x == 0.0f ? x : std::fabs(first) == std::numeric_limits<float>::infinity() ? first : value;
  }

  /// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log x = e ln 2 + log(1 + f) with f = m - 1.
  [[gnu::always_inline]] static float log(float x) {
    const bool subnormal = x < std::numeric_limits<float>::min();
    const uint32_t bits = std::bit_cast<uint32_t>(subnormal ? x * 8388608.0f : x);  // 2^23
    const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;        // bits of sqrt(1/2)
    const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
    const float e = static_cast<float>(exponent) - (subnormal ? 23.0f : 0.0f);
    float p = 6.747692078e-02f;
    p = p * f - 1.167750508e-01f;
    p = p * f + 1.188870892e-01f;
    p = p * f - 1.240534261e-01f;
    p = p * f + 1.421945095e-01f;
    p = p * f - 1.666800529e-01f;
    p = p * f + 2.000212371e-01f;
    p = p * f - 2.500000894e-01f;
    p = p * f + 3.333331347e-01f;
    const float square = f * f;
    const float value = (f + (square * (f * p - 0.5f) + e * kLn2Low)) + e * kLn2High;
    const float finite = x > 0.0f    ? value
                         : x == 0.0f ? -std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN();
    return x == std::numeric_limits<float>::infinity() ? x : finite;
  }

  /// x + x^3 p(x^2) near 0, else 1 - 2 / (e^2|x| + 1) with the sign of x.
  [[gnu::always_inline]] static float tanh(float x) {
    const float size = std::fabs(x), z = x * x;
    const float p = (((-5.648307502e-03f * z + 2.058981732e-02f) * z - 5.372512341e-02f) * z + 1.333127469e-01f) * z -
                    3.333327472e-01f;
    const float small = size + size * z * p, large = 1.0f - 2.0f / (exp(2.0f * size) + 1.0f);
    return with_sign_of(size < 0.625f ? small : large, x);
  }

  /// x + x p(x^2) near 0, else 1 - e^-q(|x|) with the sign of x; erf(4) rounds to 1.
  [[gnu::always_inline]] static float erf(float x) {
    const float size = std::fabs(x), z = x * x, a = size > 4.0f ? 4.0f : size;
    float p = 8.185090701e-05f;
    p = p * z - 8.097702521e-04f;
    p = p * z + 5.196951795e-03f;
    p = p * z - 2.685770579e-02f;
    p = p * z + 1.128366366e-01f;
    p = p * z - 3.761263192e-01f;
    p = p * z + 1.283791661e-01f;
    float q = 2.133462112e-05f;
    q = q * a - 4.372390977e-04f;
    q = q * a + 4.184554331e-03f;
    q = q * a - 2.515506931e-02f;
    q = q * a + 1.083354130e-01f;
    q = q * a + 6.332964301e-01f;
    q = q * a + 1.129539967e+00f;
    q = q * a - 1.799266465e-04f;
    const float small = x + x * p, large = 1.0f - exp(-q);
    return size < 0.945f ? small : with_sign_of(large, x);
  }

  /// GELU for results that are rounded to bf16, in 0.6 of the time of x Phi(x) by erf. The normal distribution is
  /// Phi(x) = 1 / (1 + 2^-x p(x^2)): its logit over x is smooth. Errors (tests/kernels/vector_math.cpp): 2^-13 of the
  /// result for |x| <= 5, beyond 4e-9 and the rounding of f32.
  [[gnu::always_inline]] static float gelu_for_bf16(float x) {
    const float size = std::fabs(x), square = x * x, z = square > 36.0f ? 36.0f : square, z2 = z * z;
    const float high = 6.355469118e-06f - 1.708086335e-07f * z + 1.787465712e-09f * z2;
    const float middle = -4.156267043e-04f - 1.015143433e-04f * z, low = 2.301651915e+00f + 1.056079471e-01f * z;
    const float t = -size * ((high * z2 + middle) * z2 + low), power = t < -125.0f ? -125.0f : t;
    const float shifted = power + kRound, n = shifted - kRound, r = power - n, r2 = r * r;
    const float fraction = (9.570101792e-03f * r + 5.591786031e-02f) * r * r2 +
                           (2.402474483e-01f * r2 + (6.931218147e-01f * r + 9.999992614e-01f));
    // 0 below 2^-125, so that minus infinity gives NaN as it does by erf.
    const float scaled =
        std::bit_cast<float>(std::bit_cast<uint32_t>(fraction) + (std::bit_cast<uint32_t>(shifted) << 23));
    const float e = t < -125.0f ? 0.0f : scaled, upper = 1.0f / (1.0f + e);
    return x * (x < 0.0f ? e * upper : upper);
  }

 private:
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  // ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

  /// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; e^r = 1 + rest = 1 + r + r^2 p(r).
  struct Exponential {
    float rest;
    int32_t n;
  };
  [[gnu::always_inline]] static Exponential exponential(float x) {
    const float shifted = x * 1.44269504f + kRound;  // the adder rounds to an integer
    const float n = shifted - kRound;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    const float p =
        (((1.381446491e-03f * r + 8.368780836e-03f) * r + 4.166839272e-02f) * r + 1.666651964e-01f) * r + 0.5f;
    return {r + r * r * p, static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound))};
  }
  [[gnu::always_inline]] static float power_of_two(int32_t n) {
    return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
  }
  [[gnu::always_inline]] static float with_sign_of(float size, float sign) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | (std::bit_cast<uint32_t>(sign) & 0x80000000u));
  }
};

}  // namespace weft::kernels::cpu
