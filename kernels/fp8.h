// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/activation.h"
#include "kernels/half.h"
#include "kernels/kernel.h"

// Numbers of 8 bits and their products: Micikevicius et al. 2022, "FP8 formats for deep learning". A tensor of them has
// the dtype u8; which format it has is said beside it. x is kept as the codes of x scale, one scale for a tensor, a
// power of two: so a scale never rounds, and any device has the same numbers.

namespace weft::kernels {

/// Significands of 1 + 3 bits up to 448, without infinity, for activations and weights; of 1 + 2 bits up to 57344, for
/// gradients.
enum class Fp8 : uint8_t { e4m3, e5m2 };

constexpr float largest_of(Fp8 format) { return format == Fp8::e4m3 ? 448.0f : 57344.0f; }

/// The code nearest to `value`, ties to even. What is too large, infinity as well, becomes the largest number of its
/// sign; NaN the code 0x7f.
WEFT_HD uint8_t to_fp8(Fp8 format, float value) {
  const bool e4m3 = format == Fp8::e4m3;
  const uint32_t bits = half_bits::bit_cast<uint32_t>(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= (e4m3 ? 0x43e00000u : 0x47600000u)) return static_cast<uint8_t>(sign | (e4m3 ? 0x7eu : 0x7bu));
  if (magnitude < (e4m3 ? 0x3c800000u : 0x38800000u)) {
    // Below the smallest normal number the last place is fixed: that of this f32, so adding it rounds.
    const float place = e4m3 ? 16384.0f : 128.0f;
    const float aligned = half_bits::bit_cast<float>(magnitude) + place;
    return static_cast<uint8_t>(sign | (half_bits::bit_cast<uint32_t>(aligned) - half_bits::bit_cast<uint32_t>(place)));
  }
  const int lost = e4m3 ? 20 : 21;  // bits of an f32's significand
  const uint32_t rounded = magnitude + (1u << (lost - 1)) - 1 + (magnitude >> lost & 1u);
  return static_cast<uint8_t>(sign | (rounded - (e4m3 ? 120u << 23 : 112u << 23)) >> lost);
}

/// Exact.
WEFT_HD float from_fp8(Fp8 format, uint8_t code) {
  if (format == Fp8::e5m2) return half_bits::from_f16(static_cast<uint16_t>(code << 8));
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24, magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return half_bits::bit_cast<float>(0x7fc00000u | sign);
  if (magnitude < 8) {
    const float value = static_cast<float>(magnitude) * 0.001953125f;  // 2^-9
    return sign ? -value : value;
  }
  return half_bits::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

/// The largest power of two s from 2^-63 to 2^63 for which amax s 2^margin is a number of the format; amax > 0, finite.
WEFT_HD float fp8_scale(Fp8 format, float amax, int margin) {
  const uint32_t bits = half_bits::bit_cast<uint32_t>(amax);
  const int exponent = (bits >> 23 ? static_cast<int>(bits >> 23) : 1) - 127;
  // The largest number of either format is 1.75 times a power of two.
  int power = (format == Fp8::e4m3 ? 8 : 15) - exponent - ((bits & 0x7fffffu) > 0x600000u ? 1 : 0);
  power -= margin;
  power = power < -63 ? -63 : power > 63 ? 63 : power;
  return half_bits::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
}

/// Codes lie in rows that begin at multiples of 16 bytes, as TMA wants them; this is a row's length in bytes.
constexpr int64_t fp8_pitch(int64_t columns) { return (columns + 15) / 16 * 16; }

/// y[r, c] = y_t[c, r] = to_fp8(format, x[r, c] scale) and amax = max(amax, |x|), where NaN counts as the largest, in
/// one pass. x [R, C], f32 or bf16, stride 1 along C; scale f32 [1]; y [R, C], y_t [C, R], u8, with pitches of a
/// multiple of 16 bytes, the last row too: what lies between a row's end and the next multiple of 8 is overwritten.
/// y, y_t and amax (f32 [1], not negative) may each be none, and scale where only amax is wanted.
WEFT_KERNEL(fp8_quantize, const Queue& queue, const View& y, const View& y_t, const View& amax, const View& x,
            const View& scale, Fp8 format);

/// How scales follow from the largest magnitudes of the calls before (delayed scaling; Micikevicius et al. 2022,
/// section 3.2).
struct Fp8ScaleArguments {
  int margin = 0;         ///< binades that stay free above the largest magnitude that is remembered
  int64_t gradients = 0;  ///< the last so many rows are of e5m2, the others of e4m3
};

/// For each row i of amaxes [n, history] (f32, dense): moves it on by one, its last entry being forgotten, and takes
/// latest[i] in as its first, which becomes 0 (latest f32 [n] or none: the row stays); then scale[i] = fp8_scale() of
/// the row's largest entry, 1 where all are 0. What is not finite is taken in as 0: a step that overflowed teaches
/// nothing.
WEFT_KERNEL(fp8_update_scale, const Queue& queue, const View& scale, const View& amaxes, const View& latest,
            Fp8ScaleArguments arguments);

struct Fp8MatmulArguments {
  Fp8 a = Fp8::e4m3;  ///< the format of a; that of b is e4m3
  Activation activation = Activation::none;
};

/// y = f(s), s = a b^T / (a_scale b_scale) (+ bias), and s itself into `pre` or none, as in matmul_fused: a [M, K], b
/// [N, K], u8 with stride 1 along K; y [M, N], dense, bf16 or f32, as pre; bias [N] of y's dtype, or f32, or none;
/// scales f32 [1]. Sums are kept in f32. On Hopper's wgmma where rows begin at multiples of 16 bytes; elsewhere, and on
/// other devices, the same numbers are multiplied as bf16 (cpu: f32), which hold them exactly.
WEFT_KERNEL(fp8_matmul, const Queue& queue, const View& y, const View& pre, const View& a, const View& b,
            const View& bias, const View& a_scale, const View& b_scale, Fp8MatmulArguments arguments);

/// Check the contracts' arguments.
void check_fp8_quantize(const View& y, const View& y_t, const View& amax, const View& x, const View& scale);
void check_fp8_update_scale(const View& scale, const View& amaxes, const View& latest,
                            const Fp8ScaleArguments& arguments);
void check_fp8_matmul(const View& y, const View& pre, const View& a, const View& b, const View& bias,
                      const View& a_scale, const View& b_scale);

}  // namespace weft::kernels
