// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "emulator/machine/options.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/arithmetic.h"

// add, sub, mul, mad and what else PTX does with integers (PTX ISA 9.7.1, 9.7.2). Sums are formed unsigned: PTX wraps
// around.

namespace emulator::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
/// Wide enough that the product of two narrow integers does not overflow an int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
using Doubled = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
struct Add {
  T operator()(T a, T b) const { return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b)); }
};
template <class T>
struct Sub {
  T operator()(T a, T b) const { return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b)); }
};
int32_t clamped(int64_t v) { return static_cast<int32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v); }
struct AddSaturated {
  int32_t operator()(int32_t a, int32_t b) const { return clamped(int64_t{a} + b); }
};
struct SubSaturated {
  int32_t operator()(int32_t a, int32_t b) const { return clamped(int64_t{a} - b); }
};

template <class T>
T high_product(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128_t, __uint128_t>;
    return static_cast<T>((static_cast<Wide>(a) * b) >> 64);
  } else {
    return static_cast<T>((Doubled<T>{a} * b) >> (8 * sizeof(T)));
  }
}
template <class T>
struct MulLow {
  T operator()(T a, T b) const { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b)); }
};
template <class T>
struct MulHigh {
  static constexpr bool kCostly = sizeof(T) == 8;
  T operator()(T a, T b) const { return high_product(a, b); }
};
template <class T>
struct MulWide {
  Doubled<T> operator()(T a, T b) const { return Doubled<T>{a} * b; }
};
template <class T>
struct MadLow {
  T operator()(T a, T b, T c) const { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b) + Wrapping<T>(c)); }
};
template <class T>
struct MadHigh {
  static constexpr bool kCostly = sizeof(T) == 8;
  T operator()(T a, T b, T c) const { return static_cast<T>(Wrapping<T>(high_product(a, b)) + Wrapping<T>(c)); }
};
template <class T>
struct MadWide {
  Doubled<T> operator()(T a, T b, Doubled<T> c) const {
    return static_cast<Doubled<T>>(Unsigned<Doubled<T>>(Doubled<T>{a} * b) + Unsigned<Doubled<T>>(c));
  }
};
struct MadHighSaturated {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const { return clamped(int64_t{high_product(a, b)} + c); }
};

// The low 24 bits of each source, sign-extended for s32.
template <class T>
int64_t low24(T v) {
  return static_cast<T>(static_cast<uint32_t>(v) << 8) >> 8;
}
template <class T, bool high>
struct Mul24 {
  T operator()(T a, T b) const { return static_cast<T>((low24(a) * low24(b)) >> (high ? 16 : 0)); }
};
template <class T, bool high>
struct Mad24 {
  T operator()(T a, T b, T c) const {
    return static_cast<T>(static_cast<uint32_t>(Mul24<T, high>()(a, b)) + static_cast<uint32_t>(c));
  }
};
struct Mad24HighSaturated {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return clamped(int64_t{Mul24<int32_t, true>()(a, b)} + c);
  }
};

template <class T>
struct Sad {
  T operator()(T a, T b, T c) const {
    const Wrapping<T> x = Wrapping<T>(a), y = Wrapping<T>(b);
    return static_cast<T>(Wrapping<T>(c) + (a < b ? y - x : x - y));
  }
};

// PTX leaves a division by zero open; the hardware's routine gives all ones, for the remainder as well.
template <class T>
struct Div {
  static constexpr bool kCostly = true;
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Rem {
  static constexpr bool kCostly = true;
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
// 32-bit quotients through f64, which is vectorised: a / b is 2^-32 away from the next integer at least, in proportion,
// so that rounding to 53 bits never reaches it. The conversions keep within what AVX2 has, the signed ones.
double wide_of(int32_t v) { return v; }
double wide_of(uint32_t v) { return static_cast<double>(static_cast<int32_t>(v ^ 0x80000000u)) + 0x1p31; }
template <class T>
T quotient(T a, T b) {
  const double q = __builtin_trunc(wide_of(a) / wide_of(b));
  if constexpr (std::is_signed_v<T>) {
    // Only -2^31 / -1 = 2^31 does not fit: it wraps around. The result for b = 0 is unused.
    const double fits = q < 0x1p31 ? q : -0x1p31;
    return static_cast<int32_t>(fits > -0x1p31 ? fits : -0x1p31);
  } else {
    const double fits = q - 0x1p31;
    return static_cast<uint32_t>(static_cast<int32_t>(fits < 0x1p31 ? fits : 0.0)) ^ 0x80000000u;
  }
}
template <class T>
struct Div32 {
  T operator()(T a, T b) const {
    const T q = quotient(a, b);
    return b == 0 ? static_cast<T>(-1) : q;
  }
};
template <class T>
struct Rem32 {
  T operator()(T a, T b) const {
    const T q = quotient(a, b);
    const T r = static_cast<T>(static_cast<uint32_t>(a) - static_cast<uint32_t>(q) * static_cast<uint32_t>(b));
    return b == 0 ? static_cast<T>(-1) : r;
  }
};

template <class T>
struct Abs {
  T operator()(T a) const { return static_cast<T>(a < 0 ? Wrapping<T>(0) - Wrapping<T>(a) : Wrapping<T>(a)); }
};
template <class T>
struct Neg {
  T operator()(T a) const { return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a)); }
};
template <class T>
struct Min {
  T operator()(T a, T b) const { return a < b ? a : b; }
};
template <class T>
struct Max {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class F>
struct Relu {
  int32_t operator()(int32_t a, int32_t b) const {
    const int32_t v = F()(a, b);
    return v > 0 ? v : 0;
  }
};
/// One operation on both halves of 32 bits.
template <class F>
struct Pair {
  using T = typename Signature<F>::Result;
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const auto low = static_cast<uint16_t>(F()(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<uint16_t>(F()(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | uint32_t{high} << 16;
  }
};
template <class F>
struct Relu16 {
  int16_t operator()(int16_t a, int16_t b) const {
    const int16_t v = F()(a, b);
    return v > 0 ? v : int16_t{0};
  }
};

/// The operation for an integer type; narrow types where `kNarrow` says so.
template <template <class> class F, bool kNarrow = true>
Operation by_type(Type t) {
  switch (t) {
    case Type::s16:
      return kNarrow ? as_operation<F<int16_t>>() : Operation();
    case Type::u16:
      return kNarrow ? as_operation<F<uint16_t>>() : Operation();
    case Type::s32:
      return as_operation<F<int32_t>>();
    case Type::u32:
      return as_operation<F<uint32_t>>();
    case Type::s64:
      return as_operation<F<int64_t>>();
    case Type::u64:
      return as_operation<F<uint64_t>>();
    default:
      return {};
  }
}
template <template <class> class F>
Operation by_pair_type(Type t) {
  if (t == Type::s16x2) return as_operation<Pair<F<int16_t>>>();
  if (t == Type::u16x2) return as_operation<Pair<F<uint16_t>>>();
  return by_type<F>(t);
}
template <template <class> class F>
Operation by_signed_type(Type t) {
  switch (t) {
    case Type::s16:
      return as_operation<F<int16_t>>();
    case Type::s32:
      return as_operation<F<int32_t>>();
    case Type::s64:
      return as_operation<F<int64_t>>();
    default:
      return {};
  }
}

// Extended precision (PTX ISA 9.7.2): the carry is a bit of each lane, Warp::carry. A subtraction adds the complement
// and so sets it when nothing was borrowed: nvcc's division of __int128 reads it with an addc after a sub.cc.
constexpr uint32_t kReadsCarry = kOwnFlags, kWritesCarry = kOwnFlags << 1, kSubtracts = kOwnFlags << 2,
                   kHigh = kOwnFlags << 3;

template <class T, bool multiplies>
const Instruction* with_carry(Warp& w, const Instruction* i) {
  using U = Unsigned<T>;
  const T* const a = w.in<T>(i->a);
  const T* const b = w.in<T>(i->b);
  const T* const c = multiplies ? w.in<T>(i->c) : nullptr;
  T* const d = w.out<T>(i->d);
  const bool subtracts = (i->flags & kSubtracts) != 0;
  const uint32_t carry_in = i->flags & kReadsCarry ? w.carry : subtracts ? ~0u : 0;
  const uint32_t lanes = w.lanes(i);
  uint32_t carry_out = 0;
  for (int l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1) == 0) continue;
    U x = static_cast<U>(a[l]), y = static_cast<U>(b[l]);
    if constexpr (multiplies) {
      x = i->flags & kHigh ? static_cast<U>(high_product(a[l], b[l])) : static_cast<U>(x * y);
      y = static_cast<U>(c[l]);
    }
    if (subtracts) y = static_cast<U>(~y);
    const U carry = carry_in >> l & 1;
    const U sum = x + y + carry;
    const bool out = sum < x || (sum == x && carry != 0);
    d[l] = static_cast<T>(sum);
    carry_out |= uint32_t{out} << l;
  }
  if (i->flags & kWritesCarry) w.carry = (w.carry & ~lanes) | carry_out;
  return i + 1;
}

void lower_with_carry(Lowering& l, bool multiplies, uint32_t flags) {
  allow(l, {"cc", "lo", "hi"});
  if (multiplies != (l.has("lo") || l.has("hi"))) l.unknown("the halves of a product");
  if (l.has("cc")) flags |= kWritesCarry;
  if (l.has("hi")) flags |= kHigh;
  Handler run = nullptr;
  switch (l.type()) {
    case Type::s32:
      run = multiplies ? with_carry<int32_t, true> : with_carry<int32_t, false>;
      break;
    case Type::u32:
      run = multiplies ? with_carry<uint32_t, true> : with_carry<uint32_t, false>;
      break;
    case Type::s64:
      run = multiplies ? with_carry<int64_t, true> : with_carry<int64_t, false>;
      break;
    case Type::u64:
      run = multiplies ? with_carry<uint64_t, true> : with_carry<uint64_t, false>;
      break;
    default:
      break;
  }
  emit_operation(l, {run, multiplies ? size_t{3} : size_t{2}}, l.type()).flags |= flags;
}

void lower_add_carry(Lowering& l) { lower_with_carry(l, false, kReadsCarry | (l.op() == "subc" ? kSubtracts : 0)); }
void lower_mad_carry(Lowering& l) { lower_with_carry(l, true, kReadsCarry); }

void lower_add(Lowering& l, bool subtracts) {
  if (l.has("cc")) return lower_with_carry(l, false, subtracts ? kSubtracts : 0);
  allow(l, {"sat"});
  const Type t = l.type();
  if (l.has("sat")) {
    if (t != Type::s32) l.unknown();
    emit_operation(l, subtracts ? as_operation<SubSaturated>() : as_operation<AddSaturated>(), t);
  } else {
    emit_operation(l, subtracts ? by_type<Sub>(t) : by_pair_type<Add>(t), t);
  }
}

void lower_mul(Lowering& l) {
  allow(l, {"lo", "hi", "wide"});
  const Type t = l.type();
  if (l.has("wide") && (t == Type::s64 || t == Type::u64)) l.unknown();
  if (l.has("wide")) {
    switch (t) {
      case Type::s16:
        emit_operation(l, as_operation<MulWide<int16_t>>(), t);
        return;
      case Type::u16:
        emit_operation(l, as_operation<MulWide<uint16_t>>(), t);
        return;
      case Type::s32:
        emit_operation(l, as_operation<MulWide<int32_t>>(), t);
        return;
      case Type::u32:
        emit_operation(l, as_operation<MulWide<uint32_t>>(), t);
        return;
      default:
        l.unknown();
    }
  }
  if (l.has("hi") == l.has("lo")) l.unknown();
  emit_operation(l, l.has("hi") ? by_type<MulHigh>(t) : by_type<MulLow>(t), t);
}

void lower_mad(Lowering& l) {
  if (l.has("cc")) return lower_with_carry(l, true, 0);
  allow(l, {"lo", "hi", "wide", "sat"});
  const Type t = l.type();
  if (l.has("wide")) {
    expect_operands(l, 4);
    Handler run = nullptr;
    Type sum = t;
    switch (t) {
      case Type::s16:
        run = each<MadWide<int16_t>>, sum = Type::s32;
        break;
      case Type::u16:
        run = each<MadWide<uint16_t>>, sum = Type::u32;
        break;
      case Type::s32:
        run = each<MadWide<int32_t>>, sum = Type::s64;
        break;
      case Type::u32:
        run = each<MadWide<uint32_t>>, sum = Type::u64;
        break;
      default:
        l.unknown();
    }
    if (l.has("sat")) l.unknown();
    const Ref a = l.source(l.operand(1), t), b = l.source(l.operand(2), t), c = l.source(l.operand(3), sum);
    l.emit(run, result(l), a, b, c);
    return;
  }
  if (l.has("hi") == l.has("lo")) l.unknown();
  if (l.has("sat")) {
    if (t != Type::s32 || !l.has("hi")) l.unknown();
    emit_operation(l, as_operation<MadHighSaturated>(), t);
    return;
  }
  emit_operation(l, l.has("hi") ? by_type<MadHigh>(t) : by_type<MadLow>(t), t);
}

void lower_mul24(Lowering& l) {
  allow(l, {"lo", "hi", "sat"});
  const Type t = l.type();
  const bool high = l.has("hi"), adds = l.op() == "mad24", is_s32 = t == Type::s32;
  if (high == l.has("lo") || (!is_s32 && t != Type::u32)) l.unknown();
  if (l.has("sat")) {
    if (!adds || !high || !is_s32) l.unknown();
    emit_operation(l, as_operation<Mad24HighSaturated>(), t);
  } else if (adds) {
    emit_operation(l,
                   is_s32 ? (high ? as_operation<Mad24<int32_t, true>>() : as_operation<Mad24<int32_t, false>>())
                          : (high ? as_operation<Mad24<uint32_t, true>>() : as_operation<Mad24<uint32_t, false>>()),
                   t);
  } else {
    emit_operation(l,
                   is_s32 ? (high ? as_operation<Mul24<int32_t, true>>() : as_operation<Mul24<int32_t, false>>())
                          : (high ? as_operation<Mul24<uint32_t, true>>() : as_operation<Mul24<uint32_t, false>>()),
                   t);
  }
}

/// --check uninitialised: a quotient by 0 is undefined, in C++ and in PTX.
template <class T>
const Instruction* look_at_divisor(Warp& w, const Instruction* i) {
  const T* const divisor = w.in<T>(i->a);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1)
    if (const int lane = std::countr_zero(left); divisor[lane] == 0) {
      w.block->checks->report_undefined(w, i, lane, "integer division by zero");
      break;
    }
  return i + 1;
}

void lower_divide(Lowering& l) {
  allow(l, {});
  const Type t = l.type();
  if (options().check_uninitialised) {
    const Ref divisor = l.source(l.operand(2), t);
    l.emit(bytes_of(t) == 8 ? look_at_divisor<uint64_t> : look_at_divisor<uint32_t>, kNoRef, divisor);
  }
  const bool remainder = l.op() == "rem";
  if (t == Type::s32)
    return void(emit_operation(l, remainder ? as_operation<Rem32<int32_t>>() : as_operation<Div32<int32_t>>(), t));
  if (t == Type::u32)
    return void(emit_operation(l, remainder ? as_operation<Rem32<uint32_t>>() : as_operation<Div32<uint32_t>>(), t));
  emit_operation(l, remainder ? by_type<Rem>(t) : by_type<Div>(t), t);
}

void lower_extremum(Lowering& l) {
  allow(l, {"relu"});
  const Type t = l.type();
  const bool is_min = l.op() == "min";
  if (!l.has("relu")) {
    emit_operation(l, is_min ? by_pair_type<Min>(t) : by_pair_type<Max>(t), t);
  } else if (t == Type::s32) {
    emit_operation(l, is_min ? as_operation<Relu<Min<int32_t>>>() : as_operation<Relu<Max<int32_t>>>(), t);
  } else if (t == Type::s16x2) {
    emit_operation(l, is_min ? as_operation<Pair<Relu16<Min<int16_t>>>>() : as_operation<Pair<Relu16<Max<int16_t>>>>(),
                   t);
  } else {
    l.unknown();
  }
}

void lower_sad(Lowering& l) {
  allow(l, {});
  emit_operation(l, by_type<Sad>(l.type()), l.type());
}

}  // namespace

void lower_integer(Lowering& l) {
  const std::string_view op = l.op();
  if (op == "add" || op == "sub") return lower_add(l, op == "sub");
  if (op == "mul") return lower_mul(l);
  if (op == "mad") return lower_mad(l);
  if (op == "div") return lower_divide(l);
  if (op == "min" || op == "max") return lower_extremum(l);
  if (op == "abs" || op == "neg") {
    allow(l, {});
    emit_operation(l, op == "abs" ? by_signed_type<Abs>(l.type()) : by_signed_type<Neg>(l.type()), l.type());
    return;
  }
  l.unknown();
}

void lower_arithmetic(Lowering& l) {
  const Type t = l.type();
  if (is_half(t)) return lower_half(l);
  if (t == Type::f32 || t == Type::f64 || t == Type::f32x2) return lower_float(l);
  lower_integer(l);
}

Family integer_family() {
  static constexpr Opcode kOpcodes[] = {
      {"add", lower_arithmetic}, {"sub", lower_arithmetic}, {"mul", lower_arithmetic}, {"mad", lower_arithmetic},
      {"min", lower_arithmetic}, {"max", lower_arithmetic}, {"abs", lower_arithmetic}, {"neg", lower_arithmetic},
      {"div", lower_arithmetic}, {"rem", lower_divide},     {"sad", lower_sad},        {"mul24", lower_mul24},
      {"mad24", lower_mul24},    {"addc", lower_add_carry}, {"subc", lower_add_carry}, {"madc", lower_mad_carry},
      {"and", lower_bits},       {"or", lower_bits},        {"xor", lower_bits},       {"not", lower_bits},
      {"cnot", lower_bits},      {"lop3", lower_bits},      {"shl", lower_bits},       {"shr", lower_bits},
      {"shf", lower_bits},       {"prmt", lower_bits},      {"bfe", lower_bits},       {"bfi", lower_bits},
      {"bfind", lower_bits},     {"bmsk", lower_bits},      {"szext", lower_bits},     {"brev", lower_bits},
      {"popc", lower_bits},      {"clz", lower_bits},       {"fns", lower_bits},       {"dp4a", lower_bits},
      {"dp2a", lower_bits},      {"vadd2", lower_video},    {"vadd4", lower_video},    {"vsub2", lower_video},
      {"vsub4", lower_video},    {"vavrg2", lower_video},   {"vavrg4", lower_video},   {"vabsdiff2", lower_video},
      {"vabsdiff4", lower_video}, {"vmin2", lower_video},   {"vmin4", lower_video},    {"vmax2", lower_video},
      {"vmax4", lower_video},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
