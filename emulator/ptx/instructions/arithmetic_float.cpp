// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/float_operations.h"

// Arithmetic on f32, f64 and f32x2 that IEEE 754 defines, in all roundings.

namespace emulator::ptx {
namespace {

template <class T>
struct Add {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct Sub {
  T operator()(T a, T b) const { return a - b; }
};
template <class T>
struct Mul {
  T operator()(T a, T b) const { return a * b; }
};
template <class T>
struct Fma;
template <>
struct Fma<float> {
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
};
template <>
struct Fma<double> {
  double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
};
template <class T>
struct Div {
  T operator()(T a, T b) const { return a / b; }
};
template <class T>
struct Rcp {
  T operator()(T a) const { return T{1} / a; }
};
template <class T>
struct Sqrt;
template <>
struct Sqrt<float> {
  float operator()(float a) const { return __builtin_sqrtf(a); }
};
template <>
struct Sqrt<double> {
  double operator()(double a) const { return __builtin_sqrt(a); }
};

/// Operations on the bits leave NaNs as they are.
template <bool ftz>
struct AbsF32 {
  float operator()(float a) const { return f32_of(bits_of(ftz ? flushed(a) : a) & 0x7fffffff); }
};
template <bool ftz>
struct NegF32 {
  float operator()(float a) const { return f32_of(bits_of(ftz ? flushed(a) : a) ^ 0x80000000); }
};
struct AbsF64 {
  double operator()(double a) const { return f64_of(bits_of(a) & ~(uint64_t{1} << 63)); }
};
struct NegF64 {
  double operator()(double a) const { return f64_of(bits_of(a) ^ uint64_t{1} << 63); }
};
template <class Bits>
struct CopySign {
  Bits operator()(Bits a, Bits b) const {
    constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
    return (a & sign) | (b & ~sign);
  }
};

/// .xorsign.abs: the extremum of the magnitudes, with the product's sign.
template <bool is_min, bool nan>
struct XorSign {
  float operator()(float a, float b) const {
    const float m = Extremum<float, is_min, nan>()(f32_of(bits_of(a) & 0x7fffffff), f32_of(bits_of(b) & 0x7fffffff));
    return f32_of(bits_of(m) | ((bits_of(a) ^ bits_of(b)) & 0x80000000));
  }
};
template <class F>
struct OfThree {
  float operator()(float a, float b, float c) const { return F()(F()(a, b), c); }
};

template <bool is_min, bool nan>
void emit_extremum(Lowering& l) {
  const bool three = l.operands() == 4;
  if (l.has("xorsign") || l.has("abs")) {
    if (!l.has("xorsign") || !l.has("abs")) l.unknown();
    three ? emit_tidy<OfThree<XorSign<is_min, nan>>>(l, Type::f32) : emit_tidy<XorSign<is_min, nan>>(l, Type::f32);
  } else {
    three ? emit_tidy<OfThree<Extremum<float, is_min, nan>>>(l, Type::f32)
          : emit_tidy<Extremum<float, is_min, nan>>(l, Type::f32);
  }
}

void lower_extremum(Lowering& l) {
  const bool is_min = l.op() == "min";
  if (l.type() == Type::f64) {
    allow(l, {});
    return is_min ? emit_tidy<Extremum<double, true, false>>(l, Type::f64)
                  : emit_tidy<Extremum<double, false, false>>(l, Type::f64);
  }
  allow(l, {"ftz", "NaN", "xorsign", "abs"});
  if (l.has("NaN")) return is_min ? emit_extremum<true, true>(l) : emit_extremum<false, true>(l);
  is_min ? emit_extremum<true, false>(l) : emit_extremum<false, false>(l);
}

/// Both halves of 64 bits as f32.
template <class F, bool ftz, class = typename Signature<F>::Arguments>
struct Packed;
template <class F, bool ftz, class... A>
struct Packed<F, ftz, std::tuple<A...>> {
  template <class>
  using Word = uint64_t;
  uint64_t operator()(Word<A>... a) const {
    const float low = Tidy<F, ftz>()(f32_of(static_cast<uint32_t>(a))...),
                high = Tidy<F, ftz>()(f32_of(static_cast<uint32_t>(a >> 32))...);
    return bits_of(low) | uint64_t{bits_of(high)} << 32;
  }
};
template <class F>
void emit_packed(Lowering& l) {
  allow(l, {"rn", "ftz"});
  emit_operation(l, {l.has("ftz") ? each<Packed<F, true>> : each<Packed<F, false>>, Signature<F>::kCount}, Type::f32x2);
}

template <template <class> class F>
void emit_arithmetic(Lowering& l) {
  const Type t = l.type();
  if (t == Type::f64) {
    allow(l, {"rn", "rz", "rm", "rp"});
    emit_rounded<F<double>>(l, t);
  } else {
    allow(l, {"rn", "rz", "rm", "rp", "ftz", "sat"});
    emit_rounded<F<float>>(l, t);
  }
}

void lower_sign(Lowering& l) {
  const bool is_abs = l.op() == "abs", ftz = l.has("ftz");
  if (l.type() == Type::f64) {
    allow(l, {});
    emit_operation(l, is_abs ? as_operation<AbsF64>() : as_operation<NegF64>(), Type::f64);
  } else {
    allow(l, {"ftz"});
    emit_operation(l,
                   is_abs ? (ftz ? as_operation<AbsF32<true>>() : as_operation<AbsF32<false>>())
                          : (ftz ? as_operation<NegF32<true>>() : as_operation<NegF32<false>>()),
                   Type::f32);
  }
}

void lower_copysign(Lowering& l) {
  allow(l, {});
  if (l.type() == Type::f32) return void(emit_operation(l, as_operation<CopySign<uint32_t>>(), Type::f32));
  if (l.type() != Type::f64) l.unknown();
  emit_operation(l, as_operation<CopySign<uint64_t>>(), Type::f64);
}

}  // namespace

void lower_float(Lowering& l) {
  const std::string_view op = l.op();
  const Type t = l.type();
  if (t != Type::f32 && t != Type::f64 && t != Type::f32x2) l.unknown();
  if (l.type(1) != Type::none) l.unknown("two types");
  if (t == Type::f32x2) {
    if (op == "add") return emit_packed<Add<float>>(l);
    if (op == "sub") return emit_packed<Sub<float>>(l);
    if (op == "mul") return emit_packed<Mul<float>>(l);
    if (op == "fma") return emit_packed<Fma<float>>(l);
    l.unknown();
  }
  if (op == "add") return emit_arithmetic<Add>(l);
  if (op == "sub") return emit_arithmetic<Sub>(l);
  if (op == "mul") return emit_arithmetic<Mul>(l);
  if (op == "fma" || op == "mad") return emit_arithmetic<Fma>(l);
  if (op == "min" || op == "max") return lower_extremum(l);
  if (op == "abs" || op == "neg") return lower_sign(l);
  if (l.has("approx") || l.has("full")) return lower_special_function(l);
  if (op == "div") return emit_arithmetic<Div>(l);
  if (op == "rcp") return emit_arithmetic<Rcp>(l);
  if (op == "sqrt") return emit_arithmetic<Sqrt>(l);
  l.unknown();
}

Family float_family() {
  static constexpr Opcode kOpcodes[] = {
      {"rcp", lower_float},
      {"sqrt", lower_float},
      {"rsqrt", lower_special_function},
      {"sin", lower_special_function},
      {"cos", lower_special_function},
      {"lg2", lower_special_function},
      {"copysign", lower_copysign},
      {"testp", lower_testp},
      {"setp", lower_setp},
      {"set", lower_set},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
