// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/half.h"
#include "kernels/kernel.h"

// FP8 numbers and GEMMs: Micikevicius et al. 2022, "FP8 formats for deep learning". An FP8 tensor has the dtype u8; its
// format is a separate argument. x is stored as the codes of x scale, with one scale per tensor, a power of two: so
// scaling never rounds, and all devices have the same numbers.

namespace weft::kernels {

/// Significands of 1 + 3 bits up to 448, without infinity, for activations and weights; of 1 + 2 bits up to 57344, for
/// gradients.
enum class Fp8 : uint8_t { e4m3, e5m2 };

constexpr float largest_of(Fp8 format) { return format == Fp8::e4m3 ? 448.0f : 57344.0f; }

/// The code nearest to `value`, ties to even. Values that are too large, and infinity, become the largest number of the
/// same sign; NaN becomes the code 0x7f.
WEFT_HD uint8_t to_fp8(Fp8 format, float value) {
  const bool e4m3 = format == Fp8::e4m3;
  const uint32_t bits = half_bits::bit_cast<uint32_t>(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= (e4m3 ? 0x43e00000u : 0x47600000u)) return static_cast<uint8_t>(sign | (e4m3 ? 0x7eu : 0x7bu));
  if (magnitude < (e4m3 ? 0x3c800000u : 0x38800000u)) {
    // Below the smallest normal number the last place is constant: it is the last place of this f32, so the addition
    // rounds.
    const float place = e4m3 ? 16384.0f : 128.0f;
    const float aligned = half_bits::bit_cast<float>(magnitude) + place;
    return static_cast<uint8_t>(sign | (half_bits::bit_cast<uint32_t>(aligned) - half_bits::bit_cast<uint32_t>(place)));
  }
  const int lost = e4m3 ? 20 : 21;  // bits of an f32's significand
  const uint32_t rounded = magnitude + (1u << (lost - 1)) - 1 + (magnitude >> lost & 1u);
  return static_cast<uint8_t>(sign | (rounded - (e4m3 ? 120u << 23 : 112u << 23)) >> lost);
}

/// Decodes exactly.
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

/// Bytes per row of codes; rows begin at multiples of 16 bytes, as TMA requires.
constexpr int64_t fp8_pitch(int64_t columns) { return (columns + 15) / 16 * 16; }

/// In one pass y[r, c] = y_t[c, r] = to_fp8(format, x[r, c] scale); amax = max(amax, |x|), where NaN counts as the
/// largest. x [R, C], f32 or bf16, stride 1 along C; scale f32 [1]; y [R, C], y_t [C, R], u8, with pitches of a
/// multiple of 16 bytes, the last row too: bytes between a row's end and the next multiple of 8 are overwritten. y, y_t
/// and amax (f32 [1], not negative) are each optional, and scale too if only amax is given.
WEFT_KERNEL(fp8_quantize, const Queue& queue, const View& y, const View& y_t, const View& amax, const View& x,
            const View& scale, Fp8 format);

/// Delayed scaling: scales follow from the largest magnitudes of earlier calls (Micikevicius et al. 2022, section 3.2).
struct Fp8ScaleArguments {
  int margin = 0;         ///< free binades above the largest magnitude in the history
  int64_t gradients = 0;  ///< number of e5m2 rows, at the end; the others are e4m3
};

/// Shifts each row i of amaxes [n, history] (f32, dense) by one and drops the last entry. Stores latest[i] as the first
/// entry, and sets latest[i] to 0 (latest: f32 [n], or none: rows are unchanged). Then scale[i] = fp8_scale() of the
/// row's largest entry, or 1 if all are 0. Inf and NaN are stored as 0: a step that overflowed is ignored.
WEFT_KERNEL(fp8_update_scale, const Queue& queue, const View& scale, const View& amaxes, const View& latest,
            Fp8ScaleArguments arguments);

struct Fp8MatmulArguments {
  Fp8 a = Fp8::e4m3;  ///< the format of a; that of b is e4m3
  Activation activation = Activation::none;
};

/// y = f(s), s = a b^T / (a_scale b_scale) (+ bias), and s itself into `pre` or none, as in matmul_fused: a [M, K], b
/// [N, K], u8 with stride 1 along K; y [M, N], dense, bf16 or f32, as pre; bias [N] of y's dtype, or f32, or none;
/// scales f32 [1]. Accumulates in f32. On Hopper, wgmma is used if rows begin at multiples of 16 bytes; otherwise the
/// same numbers are multiplied as bf16 (cpu: f32), which represent them exactly.
WEFT_KERNEL(fp8_matmul, const Queue& queue, const View& y, const View& pre, const View& a, const View& b,
            const View& bias, const View& a_scale, const View& b_scale, Fp8MatmulArguments arguments);

/// Check the contracts' arguments.
void check_fp8_quantize(const View& y, const View& y_t, const View& amax, const View& x, const View& scale);
void check_fp8_update_scale(const View& scale, const View& amaxes, const View& latest,
                            const Fp8ScaleArguments& arguments);
void check_fp8_matmul(const View& y, const View& pre, const View& a, const View& b, const View& bias,
                      const View& a_scale, const View& b_scale);

}  // namespace weft::kernels
