// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/ptx/instructions/arithmetic.h"
#include "emulator/ptx/instructions/conversion.h"
#include "emulator/ptx/instructions/float_operations.h"

// cvt (PTX ISA 9.7.9.22 and 23). Frequent conversions have loops of their own; all others go through Conversion.

namespace emulator::ptx {
namespace {

template <class To, class From>
struct Cast {
  To operator()(From v) const { return static_cast<To>(v); }
};

template <class To>
Handler cast_to(Type from) {
  switch (from) {
    case Type::u8:
      return each<Cast<To, uint8_t>>;
    case Type::s8:
      return each<Cast<To, int8_t>>;
    case Type::u16:
      return each<Cast<To, uint16_t>>;
    case Type::s16:
      return each<Cast<To, int16_t>>;
    case Type::u32:
      return each<Cast<To, uint32_t>>;
    case Type::s32:
      return each<Cast<To, int32_t>>;
    case Type::u64:
      return each<Cast<To, uint64_t>>;
    case Type::s64:
      return each<Cast<To, int64_t>>;
    default:
      return nullptr;
  }
}

// Integers to f32. C++ rounds as the machine does: to the nearest.
struct U32ToF32 {
  // Through f64, which holds the value, by the conversion of signed integers, as vectors have no other.
  float operator()(uint32_t v) const {
    return static_cast<float>(static_cast<double>(static_cast<int32_t>(v ^ 0x80000000u)) + 0x1p31);
  }
};
struct U32ToF64 {
  double operator()(uint32_t v) const { return static_cast<double>(static_cast<int32_t>(v ^ 0x80000000u)) + 0x1p31; }
};

template <class T>
T whole(T v, Rounding rounding) {
  if constexpr (sizeof(T) == 4)
    return rounding == Rounding::nearest ? __builtin_rintf(v)
           : rounding == Rounding::zero  ? __builtin_truncf(v)
           : rounding == Rounding::down  ? __builtin_floorf(v)
                                         : __builtin_ceilf(v);
  else
    return rounding == Rounding::nearest ? __builtin_rint(v)
           : rounding == Rounding::zero  ? __builtin_trunc(v)
           : rounding == Rounding::down  ? __builtin_floor(v)
                                         : __builtin_ceil(v);
}
template <class From, Rounding rounding>
struct ToS32 {
  int32_t operator()(From v) const {
    const From w = whole(v, rounding), inside = w >= From(-0x1p31) && w < From(0x1p31) ? w : From(0);
    const int32_t r = w >= From(0x1p31) ? INT32_MAX : w < From(-0x1p31) ? INT32_MIN : static_cast<int32_t>(inside);
    return v != v ? static_cast<int32_t>(integer_of_nan(sizeof(From) == 8, 32)) : r;
  }
};
template <class From, Rounding rounding>
struct ToU32 {
  uint32_t operator()(From v) const {
    const From w = whole(v, rounding);
    // Numbers from 2^31 on less 2^31, so that a signed conversion does for them.
    const From above = w >= From(0x1p31) ? From(0x1p31) : From(0),
               inside = w > 0 && w < From(0x1p32) ? w - above : From(0);
    const uint32_t r = static_cast<uint32_t>(static_cast<int32_t>(inside)) ^ (w >= From(0x1p31) ? 0x80000000u : 0u);
    return v != v ? static_cast<uint32_t>(integer_of_nan(sizeof(From) == 8, 32)) : w >= From(0x1p32) ? 0xffffffffu : r;
  }
};
/// f32 to an integral f32.
template <bool ftz, Rounding rounding>
struct Integral {
  float operator()(float v) const { return canonical(whole(ftz ? flushed(v) : v, rounding)); }
};
/// f32 to f32 with .sat, which expf has.
template <bool ftz>
struct Saturated {
  float operator()(float v) const { return saturated(ftz ? flushed(v) : v); }
};
template <template <class, Rounding> class F, class From>
Handler rounded_handler(Rounding r) {
  switch (r) {
    case Rounding::nearest:
      return each<F<From, Rounding::nearest>>;
    case Rounding::zero:
      return each<F<From, Rounding::zero>>;
    case Rounding::down:
      return each<F<From, Rounding::down>>;
    case Rounding::up:
      return each<F<From, Rounding::up>>;
    default:
      return nullptr;
  }
}
template <bool ftz>
Handler integral_handler(Rounding r) {
  switch (r) {
    case Rounding::nearest:
      return each<Integral<ftz, Rounding::nearest>>;
    case Rounding::zero:
      return each<Integral<ftz, Rounding::zero>>;
    case Rounding::down:
      return each<Integral<ftz, Rounding::down>>;
    case Rounding::up:
      return each<Integral<ftz, Rounding::up>>;
    default:
      return nullptr;
  }
}

struct F32ToF64 {
  double operator()(float v) const { return v; }
};
template <bool ftz>
struct F64ToF32 {
  float operator()(double v) const { return canonical(ftz ? flushed(static_cast<float>(v)) : static_cast<float>(v)); }
};
struct F16ToF32 {
  float operator()(uint16_t v) const { return canonical(f32_of_f16(v)); }
};
struct Bf16ToF32 {
  float operator()(uint16_t v) const { return f32_of_bf16(v); }
};
struct F32ToF16 {
  uint16_t operator()(float v) const { return static_cast<uint16_t>(f16_of_f32(v)); }
};
struct F32ToBf16 {
  uint16_t operator()(float v) const { return static_cast<uint16_t>(bf16_of_f32(v)); }
};
struct F32ToF16x2 {
  uint32_t operator()(float high, float low) const { return f16_of_f32(low) | f16_of_f32(high) << 16; }
};
struct F32ToBf16x2 {
  uint32_t operator()(float high, float low) const { return bf16_of_f32(low) | bf16_of_f32(high) << 16; }
};
/// f32 to the pairs of 8 bits, the upper one first; from and to pairs of f16.
template <uint32_t (*narrow)(float)>
struct F32ToPairOf8 {
  uint16_t operator()(float high, float low) const { return static_cast<uint16_t>(narrow(low) | narrow(high) << 8); }
};
template <uint32_t (*narrow)(float)>
struct F16x2ToPairOf8 {
  uint16_t operator()(uint32_t v) const {
    return static_cast<uint16_t>(narrow(f32_of_f16(v & 0xffff)) | narrow(f32_of_f16(v >> 16)) << 8);
  }
};
template <uint32_t (*widen)(uint32_t)>
struct PairOf8ToF16x2 {
  uint32_t operator()(uint16_t v) const { return widen(v & 0xffu) | widen(v >> 8) << 16; }
};
Handler quick_pair_handler(Type to, Type from) {
  const bool e4m3 = to == Type::e4m3x2 || from == Type::e4m3x2;
  if (to == Type::bf16x2) return each<F32ToBf16x2>;
  if (to == Type::f16x2 && from == Type::f32) return each<F32ToF16x2>;
  if (to == Type::f16x2) return e4m3 ? each<PairOf8ToF16x2<f16_of_e4m3>> : each<PairOf8ToF16x2<f16_of_e5m2>>;
  if (from == Type::f32) return e4m3 ? each<F32ToPairOf8<e4m3_of_f32>> : each<F32ToPairOf8<e5m2_of_f32>>;
  return e4m3 ? each<F16x2ToPairOf8<e4m3_of_f32>> : each<F16x2ToPairOf8<e5m2_of_f32>>;
}

/// Integers of up to 32 bits to f16: where f32 rounds them they are infinity as f16.
template <class From>
struct IntToF16 {
  uint16_t operator()(From v) const { return static_cast<uint16_t>(f16_of_f32(static_cast<float>(v))); }
};

/// .rna: adds half a unit in the last place and truncates; infinity stays, a NaN is the canonical one.
struct F32ToTf32 {
  uint32_t operator()(float v) const {
    const uint32_t bits = bits_of(v), magnitude = bits & 0x7fffffff;
    return magnitude > 0x7f800000 ? kNanF32 : magnitude == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
  }
};

/// The handler for exactly this conversion, nullptr when it takes the long way.
Handler quick_handler(const Conversion& c) {
  if (c.from == Type::f32 && c.to == Type::f32 && c.sat && !c.to_integral && !c.satfinite && !c.relu)
    return c.ftz ? each<Saturated<true>> : each<Saturated<false>>;
  if (c.sat || c.satfinite || c.relu) return nullptr;
  const bool nearest = c.rounding == Rounding::nearest;
  if (c.from == Type::f32 && c.to == Type::f32 && c.to_integral)
    return c.ftz ? integral_handler<true>(c.rounding) : integral_handler<false>(c.rounding);
  if (c.from == Type::f64 && c.to == Type::f32 && nearest && !c.to_integral)
    return c.ftz ? each<F64ToF32<true>> : each<F64ToF32<false>>;
  // A subnormal f32 matters only where the rounding is away from zero.
  const bool flushes =
      c.ftz && c.from == Type::f32 && (is_float(c.to) || c.rounding == Rounding::up || c.rounding == Rounding::down);
  if (flushes) return nullptr;
  if (!is_float(c.to)) {
    if (c.from == Type::f32 && c.to == Type::s32) return rounded_handler<ToS32, float>(c.rounding);
    if (c.from == Type::f32 && c.to == Type::u32) return rounded_handler<ToU32, float>(c.rounding);
    if (c.from == Type::f64 && c.to == Type::s32) return rounded_handler<ToS32, double>(c.rounding);
    if (c.from == Type::f64 && c.to == Type::u32) return rounded_handler<ToU32, double>(c.rounding);
    return nullptr;
  }
  if (c.to_integral) return nullptr;
  if (c.from == Type::f32 && c.to == Type::tf32 && c.rounding == Rounding::away) return each<F32ToTf32>;
  if (!nearest) return nullptr;
  if (c.to == Type::f32) {
    switch (c.from) {
      case Type::f16:
        return each<F16ToF32>;
      case Type::bf16:
        return each<Bf16ToF32>;
      case Type::u32:
        return each<U32ToF32>;
      default:
        return is_float(c.from) ? nullptr : cast_to<float>(c.from);
    }
  }
  if (c.to == Type::f64) {
    if (c.from == Type::f32) return each<F32ToF64>;
    if (c.from == Type::u32) return each<U32ToF64>;
    return is_float(c.from) ? nullptr : cast_to<double>(c.from);
  }
  if (c.to == Type::f16) {
    switch (c.from) {
      case Type::f32:
        return each<F32ToF16>;
      case Type::s16:
        return each<IntToF16<int16_t>>;
      case Type::u16:
        return each<IntToF16<uint16_t>>;
      case Type::s32:
        return each<IntToF16<int32_t>>;
      case Type::u32:
        return each<IntToF16<uint32_t>>;
      default:
        return nullptr;
    }
  }
  if (c.from == Type::f32 && c.to == Type::bf16) return each<F32ToBf16>;
  return nullptr;
}

/// Integers to integers without .sat, in registers as wide as their types.
Handler quick_integer_handler(Type to, Type from) {
  switch (to) {
    case Type::u8:
      return cast_to<uint8_t>(from);
    case Type::u16:
      return cast_to<uint16_t>(from);
    case Type::s16:
      return cast_to<int16_t>(from);
    case Type::u32:
      return cast_to<uint32_t>(from);
    case Type::s32:
      return cast_to<int32_t>(from);
    case Type::u64:
      return cast_to<uint64_t>(from);
    case Type::s64:
      return cast_to<int64_t>(from);
    default:
      return nullptr;
  }
}

/// A register that may be wider than the type: its low bits.
uint64_t read_lane(const Warp& w, Ref r, bool wide, int l) {
  return wide ? w.in<uint64_t>(r)[l] : w.in<uint32_t>(r)[l];
}

constexpr uint32_t kWideSource = kOwnFlags;

const Instruction* convert_any(Warp& w, const Instruction* i) {
  const Conversion& c = *static_cast<const Conversion*>(i->more);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const uint64_t v = c(read_lane(w, i->a, (i->flags & kWideSource) != 0, l));
    if (c.to_bytes == 8)
      w.out<uint64_t>(i->d)[l] = v;
    else
      w.out<uint32_t>(i->d)[l] = static_cast<uint32_t>(v);
  }
  return i + 1;
}

/// Two numbers into the halves of one register: the first operand is the upper one. `a` and `b` may be the halves of
/// one register themselves (kNoRef for b).
struct PairConversion {
  Conversion part;
  int from_bits = 32, to_bits = 16;
};
const Instruction* convert_pair(Warp& w, const Instruction* i) {
  const PairConversion& c = *static_cast<const PairConversion*>(i->more);
  const uint32_t* const a = w.in<uint32_t>(i->a);
  const uint32_t* const b = i->b == kNoRef ? nullptr : w.in<uint32_t>(i->b);
  uint32_t* const d = w.out<uint32_t>(i->d);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const uint64_t high = c.part(b != nullptr ? a[l] : a[l] >> c.from_bits), low = c.part(b != nullptr ? b[l] : a[l]);
    d[l] = static_cast<uint32_t>(low | high << c.to_bits);
  }
  return i + 1;
}

/// cvt.pack: two saturated integers, and below 16 bits the rest of c above them.
template <bool has_c>
const Instruction* pack(Warp& w, const Instruction* i) {
  const int bits = static_cast<int>(i->imm & 0xff);
  const bool is_signed_type = (i->imm & 0x100) != 0;
  const int64_t largest = (int64_t{1} << (is_signed_type ? bits - 1 : bits)) - 1,
                smallest = is_signed_type ? -largest - 1 : 0;
  const int32_t* const a = w.in<int32_t>(i->a);
  const int32_t* const b = w.in<int32_t>(i->b);
  const uint32_t* const c = has_c ? w.in<uint32_t>(i->c) : nullptr;
  uint32_t* const d = w.out<uint32_t>(i->d);
  const auto clamped = [&](int64_t v) {
    return static_cast<uint32_t>(v < smallest ? smallest : v > largest ? largest : v) & ((uint32_t{1} << bits) - 1);
  };
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    d[l] = (has_c ? c[l] << (2 * bits) : 0) | clamped(a[l]) << bits | clamped(b[l]);
  }
  return i + 1;
}

void lower_pack(Lowering& l) {
  allow(l, {"pack", "sat"});
  const Type to = l.type(0);
  const bool is_wide = to == Type::u16 || to == Type::s16;
  uint64_t bits = 0;
  switch (to) {
    case Type::u16:
    case Type::s16:
      bits = 16;
      break;
    case Type::u8:
    case Type::s8:
      bits = 8;
      break;
    case Type::u4:
    case Type::s4:
      bits = 4;
      break;
    case Type::u2:
    case Type::s2:
      bits = 2;
      break;
    default:
      l.unknown();
  }
  const bool is_signed_type = to == Type::s16 || to == Type::s8 || to == Type::s4 || to == Type::s2;
  if (!l.has("sat") || l.type(1) != Type::s32 || (l.type(2) == Type::b32) == is_wide) l.unknown();
  expect_operands(l, is_wide ? 3 : 4);
  const Ref a = l.source(l.operand(1), Type::s32), b = l.source(l.operand(2), Type::s32);
  const Ref c = is_wide ? kNoRef : l.source(l.operand(3), Type::b32);
  l.emit(is_wide ? pack<false> : pack<true>, result(l), a, b, c).imm = bits | (is_signed_type ? 0x100u : 0u);
}

Conversion modifiers(const Lowering& l) {
  allow(l, {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "satfinite", "relu"});
  Conversion c;
  c.to_integral = l.has("rni") || l.has("rzi") || l.has("rmi") || l.has("rpi");
  c.rounding = l.has("rna")                  ? Rounding::away
               : l.has("rz") || l.has("rzi") ? Rounding::zero
               : l.has("rm") || l.has("rmi") ? Rounding::down
               : l.has("rp") || l.has("rpi") ? Rounding::up
                                             : Rounding::nearest;
  c.ftz = l.has("ftz");
  c.sat = l.has("sat");
  c.satfinite = l.has("satfinite");
  c.relu = l.has("relu");
  return c;
}

/// The type of a part of a packed type, or Type::none.
Type part_of(Type t) {
  switch (t) {
    case Type::f16x2:
      return Type::f16;
    case Type::bf16x2:
      return Type::bf16;
    case Type::e4m3x2:
      return Type::e4m3;
    case Type::e5m2x2:
      return Type::e5m2;
    default:
      return Type::none;
  }
}

void lower_pair(Lowering& l, Type to, Type from) {
  const bool one_source = from != Type::f32;
  const bool to_8_bits = to == Type::e4m3x2 || to == Type::e5m2x2,
             from_8_bits = from == Type::e4m3x2 || from == Type::e5m2x2;
  if (part_of(to) == Type::none) l.unknown();
  if (one_source && !(to_8_bits && from == Type::f16x2) && !(to == Type::f16x2 && from_8_bits)) l.unknown();
  if (to_8_bits && !l.has("satfinite")) l.unknown("without .satfinite");
  PairConversion c;
  c.part = modifiers(l);
  c.part.to = part_of(to);
  c.part.from = one_source ? part_of(from) : from;
  if (c.part.to_integral || c.part.ftz || c.part.sat || c.part.rounding == Rounding::away) l.unknown();
  c.from_bits = 8 * bytes_of(c.part.from);
  c.to_bits = 8 * bytes_of(c.part.to);
  expect_operands(l, one_source ? 2 : 3);
  const Ref a = l.source(l.operand(1), from), b = one_source ? kNoRef : l.source(l.operand(2), from), d = result(l);
  if (c.part.rounding == Rounding::nearest && !c.part.relu && c.part.satfinite == to_8_bits) {
    l.emit(quick_pair_handler(to, from), d, a, b);
  } else {
    l.emit(convert_pair, d, a, b).more = l.keep(c);
  }
}

void lower_cvt(Lowering& l) {
  if (l.has("pack")) return lower_pack(l);
  const Type to = l.type(0), from = l.type(1);
  if (from == Type::none || l.type(2) != Type::none) l.unknown("types");
  if (l.operand(1).kind == Operand::Kind::special) return lower_special_register(l);
  if (part_of(to) != Type::none || part_of(from) != Type::none) return lower_pair(l, to, from);

  Conversion c = modifiers(l);
  c.from = from;
  c.to = to;
  const auto known = [](Type t) {
    return (t >= Type::u8 && t <= Type::s64) || t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64;
  };
  if (!known(from) || !(known(to) || (to == Type::tf32 && from == Type::f32))) l.unknown();
  if (is_float(from) && !is_float(to) && !c.to_integral) l.unknown("no rounding");
  if (c.rounding == Rounding::away && to != Type::tf32) l.unknown(".rna");
  if ((c.relu || c.satfinite) && to != Type::f16 && to != Type::bf16 && to != Type::tf32) l.unknown();
  expect_operands(l, 2);
  const Operand& source = l.operand(1);
  const int from_bytes = bytes_of(from), to_bytes = bytes_of(to);
  const bool wide_source = l.register_bytes(source) == 8 && from_bytes < 8;
  // Floats of 16 bits lie in a register as they are, also in a wider one; integers are extended to the register.
  c.to_bytes = std::max(l.register_bytes(l.operand(0)), to_bytes);
  if (l.register_bytes(l.operand(0)) == 0) l.unknown("no destination");
  const bool extends =
      is_float(to) ? c.to_bytes == 8 && to_bytes < 8 : c.to_bytes != to_bytes && (is_signed(to) || c.to_bytes == 8);
  Handler quick = nullptr;
  if (!wide_source && !extends)
    quick = is_float(from) || is_float(to) ? quick_handler(c) : c.sat ? nullptr : quick_integer_handler(to, from);
  const Ref a = l.source(source, wide_source ? Type::b64 : from), d = result(l);
  if (quick != nullptr) {
    l.emit(quick, d, a);
  } else {
    Instruction& i = l.emit(convert_any, d, a);
    i.more = l.keep(c);
    if (wide_source || from_bytes == 8) i.flags |= kWideSource;
  }
}

}  // namespace

Family convert_family() {
  static constexpr Opcode kOpcodes[] = {{"cvt", lower_cvt}, {"cvta", lower_cvta}, {"isspacep", lower_isspacep}};
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
