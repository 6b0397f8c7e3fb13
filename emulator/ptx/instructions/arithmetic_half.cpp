// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "emulator/ptx/instructions/float_operations.h"
#include "emulator/ptx/instructions/special_functions.h"

// Arithmetic on f16, bf16 and pairs of them (PTX ISA 9.7.4). Everything is computed in f32 and rounded once more. That
// is harmless for sums and products of halves (24 >= 2 * 11 + 2 bits; Figueroa 1995) but not for fma, nor for what is
// subnormal as f32: see fused().

namespace emulator::ptx {
namespace {

struct F16 {
  static constexpr uint32_t kOne = 0x3c00, kInfinity = 0x7c00;
  static float wide(uint32_t h) { return f32_of_f16(h); }
  static uint32_t narrow(float v) { return f16_of_f32(v); }
  /// Whether v may be halfway between two halves: always when it is, and rarely else.
  static bool may_be_tie(float v) {
    const uint32_t bits = bits_of(v);
    return ((bits & 0x1fff) == 0x1000) |
           (((bits & 0x7fffffff) < 0x38800000) & ((bits & 0xfff) == 0) & ((bits << 1) != 0));
  }
};
struct Bf16 {
  static constexpr uint32_t kOne = 0x3f80, kInfinity = 0x7f80;
  static float wide(uint32_t h) { return f32_of_bf16(h); }
  static uint32_t narrow(float v) { return bf16_of_f32(v); }
  static bool may_be_tie(float v) { return (bits_of(v) & 0xffff) == 0x8000; }
};

struct Plain {
  static constexpr bool ftz = false, saturates = false, relu = false;
};
struct Ftz : Plain {
  static constexpr bool ftz = true;
};
struct Saturated : Plain {
  static constexpr bool saturates = true;
};
struct FtzSaturated : Saturated {
  static constexpr bool ftz = true;
};
struct ReluOnly : Plain {
  static constexpr bool relu = true;
};
struct FtzRelu : ReluOnly {
  static constexpr bool ftz = true;
};

/// The bits of a half without a subnormal number.
template <class H>
uint32_t flushed_half(uint32_t h) {
  return (h & H::kInfinity) == 0 ? h & 0x8000 : h;
}
template <class H, class M>
float source(uint32_t h) {
  return H::wide(M::ftz ? flushed_half<H>(h) : h);
}
template <class H, class M>
uint32_t finished(float v) {
  uint32_t h = H::narrow(v);
  const bool is_nan = (h & 0x7fff) > H::kInfinity;
  if (M::ftz) h = flushed_half<H>(h);
  if (M::relu) h = (h & 0x8000) != 0 && !is_nan ? 0 : h;
  if (M::saturates) h = (h & 0x8000) != 0 || is_nan ? 0 : h > H::kOne ? H::kOne : h;
  return h;
}

/// One half, or both halves of 32 bits, through F: F()(float …) -> float.
template <class H, class F, class M, bool packed, class = typename Signature<F>::Arguments>
struct Halves;
template <class H, class F, class M, bool packed, class... A>
struct Halves<H, F, M, packed, std::tuple<A...>> {
  static constexpr bool kCostly = Costly<F>;
  using Word = std::conditional_t<packed, uint32_t, uint16_t>;
  template <class>
  using WordOf = Word;
  Word operator()(WordOf<A>... a) const {
    const uint32_t low = finished<H, M>(F()(source<H, M>(static_cast<uint16_t>(a))...));
    if constexpr (packed)
      return low | finished<H, M>(F()(source<H, M>(a >> 16)...)) << 16;
    else
      return static_cast<Word>(low);
  }
};

/// `rounded`, an f32 next to a * b + c, moved one unit in the last place towards the exact value: then a tie remains
/// only if the exact value is a tie.
float nudged(float rounded, float a, float b, float c) {
  const double p = static_cast<double>(a) * b;  // exact
  const double sum = p + c, part = sum - p;
  double rest = sum - rounded;
  if (rest == 0) rest = (p - (sum - part)) + (c - part);  // the sum's rounding error (Knuth's two-sum)
  if (rest == 0) return rounded;
  const bool outwards = (rest > 0) == (rounded > 0);
  return f32_of(bits_of(rounded) + (outwards ? 1u : 0u - 1u));
}

/// fma, and with `product` mul. The f32 result decides alone unless it is a tie of halves. Then the bits that f32
/// rounded away matter; these few are examined singly.
template <class H, class M, bool packed, bool product>
const Instruction* fused(Warp& w, const Instruction* i) {
  const uint32_t* const a = w.in<uint32_t>(i->a);
  const uint32_t* const b = w.in<uint32_t>(i->b);
  const uint32_t* const c = product ? a : w.in<uint32_t>(i->c);
  const auto addend = [&](uint32_t h) __attribute__((always_inline)) { return product ? -0.0f : source<H, M>(h); };
  alignas(64) uint32_t r[kLanes];
  uint32_t ties = 0;
  for (int l = 0; l < kLanes; ++l) {
    const float low = __builtin_fmaf(source<H, M>(a[l] & 0xffff), source<H, M>(b[l] & 0xffff), addend(c[l] & 0xffff));
    bool tie = H::may_be_tie(low);
    r[l] = finished<H, M>(low);
    if constexpr (packed) {
      const float high = __builtin_fmaf(source<H, M>(a[l] >> 16), source<H, M>(b[l] >> 16), addend(c[l] >> 16));
      tie = tie | H::may_be_tie(high);
      r[l] |= finished<H, M>(high) << 16;
    }
    ties |= tie ? kLaneBits<uint32_t>.bit[l] : 0;
  }
  const uint32_t lanes = w.lanes(i);
  for (uint32_t left = ties & lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    uint32_t exact = 0;
    for (uint32_t shift = 0; shift < (packed ? 32 : 16); shift += 16) {
      const float x = source<H, M>(a[l] >> shift & 0xffff), y = source<H, M>(b[l] >> shift & 0xffff);
      const float z = addend(c[l] >> shift & 0xffff), rounded = __builtin_fmaf(x, y, z);
      exact |= finished<H, M>(H::may_be_tie(rounded) ? nudged(rounded, x, y, z) : rounded) << shift;
    }
    r[l] = exact;
  }
  if (lanes == kAllLanes)
    std::memcpy(w.out<uint32_t>(i->d), r, sizeof r);
  else
    blend(w.out<uint32_t>(i->d), r, lanes);
  return i + 1;
}

struct Add {
  float operator()(float a, float b) const { return a + b; }
};
struct Sub {
  float operator()(float a, float b) const { return a - b; }
};
struct Mul {
  float operator()(float a, float b) const { return a * b; }
};
struct Exp2 {
  float operator()(float a) const { return exp2_of(a); }
};
struct Tanh {
  static constexpr bool kCostly = true;
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
template <bool is_min, bool nan>
struct XorSign {
  float operator()(float a, float b) const {
    const float m = Extremum<float, is_min, nan>()(f32_of(bits_of(a) & 0x7fffffff), f32_of(bits_of(b) & 0x7fffffff));
    return f32_of((bits_of(m) & 0x7fffffff) | ((bits_of(a) ^ bits_of(b)) & 0x80000000));
  }
};

// Signs need no conversion.
template <class H, class M, bool packed, bool is_abs>
struct Sign {
  using Word = std::conditional_t<packed, uint32_t, uint16_t>;
  Word operator()(Word a) const {
    uint32_t v = a;
    if (M::ftz) v = flushed_half<H>(v & 0xffff) | (packed ? flushed_half<H>(v >> 16) << 16 : 0);
    return static_cast<Word>(is_abs ? v & 0x7fff7fff : v ^ (packed ? 0x80008000u : 0x8000u));
  }
};

template <class H, class F, class M>
void emit_halves(Lowering& l) {
  const Type t = l.type();
  const bool packed = t == Type::f16x2 || t == Type::bf16x2;
  emit_operation(l, packed ? as_operation<Halves<H, F, M, true>>() : as_operation<Halves<H, F, M, false>>(), t);
}

template <class H, class M, bool product>
void emit_fused(Lowering& l) {
  const Type t = l.type();
  const bool packed = t == Type::f16x2 || t == Type::bf16x2;
  emit_operation(
      l, {packed ? fused<H, M, true, product> : fused<H, M, false, product>, product ? size_t{2} : size_t{3}}, t);
}

template <class H, class M>
void lower_arithmetic_with(Lowering& l) {
  const std::string_view op = l.op();
  if (op == "fma") return emit_fused<H, M, false>(l);
  if (M::relu) l.unknown(".relu");
  if (op == "mul") {
    // A product of two f16 is an f32; a product of bf16 may be too small for f32.
    if constexpr (std::is_same_v<H, F16>)
      return emit_halves<H, Mul, M>(l);
    else
      return emit_fused<H, M, true>(l);
  }
  if (op == "add") return emit_halves<H, Add, M>(l);
  emit_halves<H, Sub, M>(l);
}

void lower_rounded(Lowering& l) {
  const bool ftz = l.has("ftz"), sat = l.has("sat"), relu = l.has("relu");
  if (sat && relu) l.unknown();
  if (l.type() == Type::bf16 || l.type() == Type::bf16x2) {
    allow(l, {"rn", "noftz", "relu"});
    return relu ? lower_arithmetic_with<Bf16, ReluOnly>(l) : lower_arithmetic_with<Bf16, Plain>(l);
  }
  allow(l, {"rn", "ftz", "noftz", "sat", "relu"});
  if (sat) return ftz ? lower_arithmetic_with<F16, FtzSaturated>(l) : lower_arithmetic_with<F16, Saturated>(l);
  if (relu) return ftz ? lower_arithmetic_with<F16, FtzRelu>(l) : lower_arithmetic_with<F16, ReluOnly>(l);
  ftz ? lower_arithmetic_with<F16, Ftz>(l) : lower_arithmetic_with<F16, Plain>(l);
}

template <class H, class M, bool is_min>
void lower_extremum_with(Lowering& l) {
  const bool nan = l.has("NaN");
  if (l.has("xorsign") != l.has("abs")) l.unknown();
  if (l.has("xorsign"))
    return nan ? emit_halves<H, XorSign<is_min, true>, M>(l) : emit_halves<H, XorSign<is_min, false>, M>(l);
  nan ? emit_halves<H, Extremum<float, is_min, true>, M>(l) : emit_halves<H, Extremum<float, is_min, false>, M>(l);
}

/// Instructions with .ftz and no other modifier of the result.
template <class H, class M>
void lower_unrounded_with(Lowering& l) {
  const std::string_view op = l.op();
  const Type t = l.type();
  const bool packed = t == Type::f16x2 || t == Type::bf16x2;
  if (op == "min" || op == "max") {
    allow(l, {"ftz", "NaN", "xorsign", "abs"});
    return op == "min" ? lower_extremum_with<H, M, true>(l) : lower_extremum_with<H, M, false>(l);
  }
  if (op == "abs" || op == "neg") {
    allow(l, {"ftz"});
    if (op == "abs") {
      emit_operation(l, packed ? as_operation<Sign<H, M, true, true>>() : as_operation<Sign<H, M, false, true>>(), t);
    } else {
      emit_operation(l, packed ? as_operation<Sign<H, M, true, false>>() : as_operation<Sign<H, M, false, false>>(), t);
    }
    return;
  }
  allow(l, {"approx", "ftz"});
  if (!l.has("approx")) l.unknown();
  if (op == "ex2") return emit_halves<H, Exp2, M>(l);
  if (op == "tanh" && !M::ftz) return emit_halves<H, Tanh, M>(l);
  l.unknown();
}

}  // namespace

void lower_half(Lowering& l) {
  const std::string_view op = l.op();
  if (l.type(1) != Type::none) l.unknown("two types");
  if (op == "add" || op == "sub" || op == "mul" || op == "fma") return lower_rounded(l);
  const bool is_bf16 = l.type() == Type::bf16 || l.type() == Type::bf16x2;
  if (l.has("ftz")) {
    // For bf16 only ex2 has it.
    if (is_bf16 && op != "ex2") l.unknown(".ftz");
    return is_bf16 ? lower_unrounded_with<Bf16, Ftz>(l) : lower_unrounded_with<F16, Ftz>(l);
  }
  is_bf16 ? lower_unrounded_with<Bf16, Plain>(l) : lower_unrounded_with<F16, Plain>(l);
}

Family half_family() {
  // The opcodes that halves and floats have, and integers have not.
  static constexpr Opcode kOpcodes[] = {
      {"fma", lower_arithmetic},
      {"ex2", lower_arithmetic},
      {"tanh", lower_arithmetic},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
