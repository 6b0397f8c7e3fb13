// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/arithmetic.h"

// Logic, shifts, fields of bits and bytes (PTX ISA 9.7.1 and 9.7.8).

namespace emulator::ptx {
namespace {

template <class T>
constexpr uint32_t kBits = 8 * sizeof(T);

// Shifts by any count: C++ leaves those by the width and more open, PTX shifts everything out.
template <class T>
T shifted_left(T v, uint32_t n) {
  return n >= kBits<T> ? T{0} : static_cast<T>(v << (n & (kBits<T> - 1)));
}
template <class T>
T shifted_right(T v, uint32_t n) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(v >> (n >= kBits<T> ? kBits<T> - 1 : n));
  else
    return n >= kBits<T> ? T{0} : static_cast<T>(v >> (n & (kBits<T> - 1)));
}

template <class T>
struct And {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct Or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct Xor {
  T operator()(T a, T b) const { return a ^ b; }
};
template <class T>
struct Not {
  T operator()(T a) const { return static_cast<T>(~a); }
};
template <class T>
struct LogicalNot {
  T operator()(T a) const { return a == 0; }
};
template <class T>
struct Shl {
  T operator()(T a, uint32_t n) const { return shifted_left(a, n); }
};
template <class T>
struct Shr {
  T operator()(T a, uint32_t n) const { return shifted_right(a, n); }
};

template <bool left, bool wraps>
struct Funnel {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t count) const {
    const uint32_t n = wraps ? count & 31 : count > 32 ? 32 : count;
    return left ? shifted_left(high, n) | shifted_right(low, 32 - n)
                : shifted_left(high, 32 - n) | shifted_right(low, n);
  }
};

/// The table as a sum (xor) of products of a, b and c: 8 coefficients, so that no lane looks anything up.
struct Lop3 {
  uint32_t k[8];
  explicit Lop3(const Instruction& i) {
    for (uint32_t n = 0; n < 8; ++n) {
      uint32_t odd = 0;
      for (uint32_t m = 0; m < 8; ++m) odd ^= (m & ~n) == 0 ? static_cast<uint32_t>(i.imm >> m & 1) : 0;
      k[n] = 0 - odd;
    }
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t ab = a & b;
    return k[0] ^ (k[1] & c) ^ (k[2] & b) ^ (k[3] & b & c) ^ (k[4] & a) ^ (k[5] & a & c) ^ (k[6] & ab) ^
           (k[7] & ab & c);
  }
};

// prmt: a byte of the eight of b:a for each nibble of the selector; its top bit asks for the byte's sign eight times.
struct Permute {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    const uint64_t bytes = a | uint64_t{b} << 32;
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t s = selector >> (4 * k);
      const uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (s & 7))) & 0xff;
      d |= (s & 8 ? (byte >> 7) * 0xff : byte) << (8 * k);
    }
    return d;
  }
};
/// A selector that is a constant and asks for no signs.
struct PermuteFixed {
  uint32_t of_b[4], shift[4];
  explicit PermuteFixed(const Instruction& i) {
    for (uint32_t k = 0; k < 4; ++k) {
      const auto s = static_cast<uint32_t>(i.imm >> (4 * k));
      of_b[k] = s & 4 ? 0xffffffffu : 0;
      shift[k] = 8 * (s & 3);
    }
  }
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) d |= (((a & ~of_b[k]) | (b & of_b[k])) >> shift[k] & 0xff) << (8 * k);
    return d;
  }
};
/// The selectors of the modes, by the two low bits of c (PTX ISA, prmt).
struct PermuteMode {
  uint16_t selectors[4];
  explicit PermuteMode(const Instruction& i) {
    for (int k = 0; k < 4; ++k) selectors[k] = static_cast<uint16_t>(i.imm >> (16 * k));
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const { return Permute()(a, b, selectors[c & 3]); }
};

template <class T>
struct ExtractField {
  T operator()(T a, uint32_t b, uint32_t c) const {
    const uint32_t length = c & 0xff, n = kBits<T> - length;
    const T v = shifted_right(a, b & 0xff);
    if (length == 0) return 0;
    if (length >= kBits<T>) return v;
    return static_cast<T>(static_cast<T>(static_cast<std::make_unsigned_t<T>>(v) << (n & (kBits<T> - 1))) >>
                          (n & (kBits<T> - 1)));
  }
};
template <class T>
struct InsertField {
  T operator()(T a, T b, uint32_t c, uint32_t d) const {
    const uint32_t at = c & 0xff, length = d & 0xff;
    const T field = shifted_left(static_cast<T>(shifted_left(T{1}, length) - 1), at);
    return (b & ~field) | (shifted_left(a, at) & field);
  }
};
template <class T, bool as_shift>
struct FindBit {
  uint32_t operator()(T v) const {
    using U = std::make_unsigned_t<T>;
    const U bits = v < 0 ? static_cast<U>(~v) : static_cast<U>(v);
    if (bits == 0) return 0xffffffffu;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return as_shift ? zeros : kBits<T> - 1 - zeros;
  }
};
template <bool clamps>
struct BitMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint32_t at = clamps ? a : a & 31, length = clamps ? b : b & 31;
    const uint32_t mask = length >= 32 ? 0xffffffffu : (uint32_t{1} << (length & 31)) - 1;
    return shifted_left(mask, at);
  }
};
template <class T, bool clamps>
struct Extend {
  T operator()(T a, uint32_t b) const {
    const uint32_t length = clamps ? b : b & 31;
    if (length == 0) return 0;
    if (length >= 32) return a;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - length)) >> (32 - length));
  }
};
template <class T>
struct Reverse {
  T operator()(T v) const {
    v = static_cast<T>((v >> 1 & static_cast<T>(0x5555555555555555)) | (v & static_cast<T>(0x5555555555555555)) << 1);
    v = static_cast<T>((v >> 2 & static_cast<T>(0x3333333333333333)) | (v & static_cast<T>(0x3333333333333333)) << 2);
    v = static_cast<T>((v >> 4 & static_cast<T>(0x0f0f0f0f0f0f0f0f)) | (v & static_cast<T>(0x0f0f0f0f0f0f0f0f)) << 4);
    if constexpr (sizeof(T) == 8)
      return __builtin_bswap64(v);
    else
      return __builtin_bswap32(v);
  }
};
template <class T>
struct CountOnes {
  uint32_t operator()(T v) const { return static_cast<uint32_t>(std::popcount(v)); }
};
template <class T>
struct CountZeros {
  uint32_t operator()(T v) const { return static_cast<uint32_t>(std::countl_zero(v)); }
};
struct FindSet {
  static constexpr bool kCostly = true;
  uint32_t operator()(uint32_t mask, uint32_t base, int32_t offset) const {
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : 0xffffffffu;
    const int64_t step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
    for (int64_t at = static_cast<int32_t>(base); at >= 0 && at < 32; at += step)
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    return 0xffffffffu;
  }
};

template <class A, class B>
struct Dot4 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int k = 0; k < 32; k += 8) c += static_cast<uint32_t>(static_cast<A>(a >> k) * static_cast<B>(b >> k));
    return c;
  }
};
template <class A, class B, int from>
struct Dot2 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    c += static_cast<uint32_t>(int32_t{static_cast<A>(a)} * int32_t{static_cast<B>(b >> from)});
    return c + static_cast<uint32_t>(int32_t{static_cast<A>(a >> 16)} * int32_t{static_cast<B>(b >> (from + 8))});
  }
};

// Predicates: a bit of each lane in one word.
enum class Logic : uint8_t { conjunction, disjunction, exclusive };
constexpr uint32_t kNotA = kOwnFlags, kNotB = kOwnFlags << 1;
template <Logic logic>
const Instruction* predicate_logic(Warp& w, const Instruction* i) {
  const uint32_t a = w.predicate(i->a, (i->flags & kNotA) != 0), b = w.predicate(i->b, (i->flags & kNotB) != 0);
  w.set_predicate(i->d, w.lanes(i), logic == Logic::conjunction ? a & b : logic == Logic::disjunction ? a | b : a ^ b);
  return i + 1;
}
const Instruction* predicate_not(Warp& w, const Instruction* i) {
  w.set_predicate(i->d, w.lanes(i), ~w.predicate(i->a, (i->flags & kNotA) != 0));
  return i + 1;
}

void lower_predicate_logic(Lowering& l) {
  allow(l, {});
  const std::string_view op = l.op();
  const bool unary = op == "not";
  expect_operands(l, unary ? 2 : 3);
  bool not_a = false, not_b = false;
  const Ref a = l.predicate(l.operand(1), &not_a), b = unary ? a : l.predicate(l.operand(2), &not_b);
  const Ref d = l.predicate(l.operand(0));
  const Handler run = op == "and"   ? predicate_logic<Logic::conjunction>
                      : op == "or"  ? predicate_logic<Logic::disjunction>
                      : op == "xor" ? predicate_logic<Logic::exclusive>
                      : unary       ? predicate_not
                                    : nullptr;
  if (run == nullptr) l.unknown();
  l.emit(run, d, a, b).flags |= (not_a ? kNotA : 0u) | (not_b ? kNotB : 0u);
}

// lop3 with a predicate: p = (d != 0) BoolOp q. Emitted after the lop3 proper, with the guard of the same instruction.
template <Logic logic>
const Instruction* any_bit(Warp& w, const Instruction* i) {
  const uint32_t* const a = w.in<uint32_t>(i->a);
  uint32_t found = 0;
  for (int l = 0; l < kLanes; ++l) found |= a[l] != 0 ? kLaneBits<uint32_t>.bit[l] : 0;
  const uint32_t q = w.predicate(i->b, (i->flags & kNotB) != 0);
  w.set_predicate(i->d, w.lanes(i), logic == Logic::conjunction ? found & q : found | q);
  return i + 1;
}

void lower_lop3(Lowering& l) {
  const bool combines = l.has("or") || l.has("and");
  allow(l, {"or", "and"});
  if (l.type() != Type::b32) l.unknown();
  expect_operands(l, combines ? 6 : 5);
  const Operand& table = l.operand(4);
  if (table.kind != Operand::Kind::integer) l.unknown("a table that is no constant");
  const Ref a = l.source(l.operand(1), Type::b32), b = l.source(l.operand(2), Type::b32),
            c = l.source(l.operand(3), Type::b32);
  const Operand& out = l.operand(0);
  if (!combines) {
    l.emit(each<Lop3>, result(l), a, b, c).imm = static_cast<uint64_t>(table.value) & 0xff;
    return;
  }
  if (out.kind != Operand::Kind::pair || out.parts.size() != 2) l.unknown("no predicate");
  bool negated = false;
  const Ref q = l.predicate(l.operand(5), &negated), wanted = l.destination(out.parts[0]),
            p = l.predicate(out.parts[1]);
  const Ref d = wanted == kNoRef ? l.scratch(4) : wanted;
  l.emit(each<Lop3>, d, a, b, c).imm = static_cast<uint64_t>(table.value) & 0xff;
  l.emit(l.has("or") ? any_bit<Logic::disjunction> : any_bit<Logic::conjunction>, p, d, q).flags |=
      negated ? kNotB : 0u;
}

template <template <class> class F>
Operation by_width(Type t) {
  switch (t) {
    case Type::b16:
      return as_operation<F<uint16_t>>();
    case Type::b32:
      return as_operation<F<uint32_t>>();
    case Type::b64:
      return as_operation<F<uint64_t>>();
    default:
      return {};
  }
}

void lower_logic(Lowering& l) {
  if (l.type() == Type::pred) return lower_predicate_logic(l);
  allow(l, {});
  const std::string_view op = l.op();
  const Type t = l.type();
  emit_operation(l,
                 op == "and"   ? by_width<And>(t)
                 : op == "or"  ? by_width<Or>(t)
                 : op == "xor" ? by_width<Xor>(t)
                 : op == "not" ? by_width<Not>(t)
                               : by_width<LogicalNot>(t),
                 t);
}

/// d = run(a, b, c, e): the first `wide` sources are of the instruction's type, the others of 32 bits.
void emit_counts(Lowering& l, Handler run, size_t sources, size_t wide) {
  if (run == nullptr) l.unknown();
  expect_operands(l, sources + 1);
  Ref s[4] = {kNoRef, kNoRef, kNoRef, kNoRef};
  for (size_t n = 0; n < sources; ++n) s[n] = l.source(l.operand(n + 1), n < wide ? l.type() : Type::u32);
  Instruction& i = l.emit(run, result(l), s[0], s[1], s[2]);
  if (sources == 4) i.aux = s[3];
}

Handler shift_handler(bool left, Type t) {
  switch (t) {
    case Type::b16:
    case Type::u16:
      return left ? each<Shl<uint16_t>> : each<Shr<uint16_t>>;
    case Type::b32:
    case Type::u32:
      return left ? each<Shl<uint32_t>> : each<Shr<uint32_t>>;
    case Type::b64:
    case Type::u64:
      return left ? each<Shl<uint64_t>> : each<Shr<uint64_t>>;
    case Type::s16:
      return left ? nullptr : each<Shr<int16_t>>;
    case Type::s32:
      return left ? nullptr : each<Shr<int32_t>>;
    case Type::s64:
      return left ? nullptr : each<Shr<int64_t>>;
    default:
      return nullptr;
  }
}

void lower_funnel(Lowering& l) {
  allow(l, {"l", "r", "clamp", "wrap"});
  if (l.type() != Type::b32 || l.has("l") == l.has("r") || l.has("clamp") == l.has("wrap")) l.unknown();
  const bool wraps = l.has("wrap");
  const Handler run = l.has("l") ? (wraps ? each<Funnel<true, true>> : each<Funnel<true, false>>)
                                 : (wraps ? each<Funnel<false, true>> : each<Funnel<false, false>>);
  emit_counts(l, run, 3, 3);
}

void lower_permute(Lowering& l) {
  // Selectors for c = 3, 2, 1, 0.
  static constexpr std::pair<std::string_view, uint64_t> kModes[] = {
      {"f4e", 0x6543'5432'4321'3210}, {"b4e", 0x0123'7012'6701'5670}, {"rc8", 0x3333'2222'1111'0000},
      {"ecl", 0x3333'3222'3211'3210}, {"ecr", 0x3210'2210'1110'0000}, {"rc16", 0x3232'1010'3232'1010}};
  allow(l, {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (l.type() != Type::b32) l.unknown();
  for (const auto& [name, selectors] : kModes) {
    if (!l.has(name)) continue;
    emit_operation(l, as_operation<PermuteMode>(), Type::b32).imm = selectors;
    return;
  }
  const Operand& selector = l.operand(3);
  if (selector.kind == Operand::Kind::integer && (selector.value & 0x8888) == 0) {
    expect_operands(l, 4);
    const Ref a = l.source(l.operand(1), Type::b32), b = l.source(l.operand(2), Type::b32);
    l.emit(each<PermuteFixed>, result(l), a, b).imm = static_cast<uint64_t>(selector.value);
    return;
  }
  emit_operation(l, as_operation<Permute>(), Type::b32);
}

Handler by_signedness_and_size(Type t, Handler s32, Handler u32, Handler s64, Handler u64) {
  return t == Type::s32 ? s32 : t == Type::u32 ? u32 : t == Type::s64 ? s64 : t == Type::u64 ? u64 : nullptr;
}

void lower_dot(Lowering& l) {
  allow(l, {"lo", "hi"});
  const bool four = l.op() == "dp4a", high = l.has("hi");
  if (four ? l.has("lo") || high : l.has("lo") == high) l.unknown();
  const auto kind = [&](Type t) { return t == Type::s32 ? 1 : t == Type::u32 ? 0 : 2; };
  const int a = kind(l.type(0)), b = kind(l.type(1));
  if (a == 2 || b == 2) l.unknown();
  static constexpr Operation kDots[3][4] = {
      {as_operation<Dot4<uint8_t, uint8_t>>(), as_operation<Dot4<uint8_t, int8_t>>(),
       as_operation<Dot4<int8_t, uint8_t>>(), as_operation<Dot4<int8_t, int8_t>>()},
      {as_operation<Dot2<uint16_t, uint8_t, 0>>(), as_operation<Dot2<uint16_t, int8_t, 0>>(),
       as_operation<Dot2<int16_t, uint8_t, 0>>(), as_operation<Dot2<int16_t, int8_t, 0>>()},
      {as_operation<Dot2<uint16_t, uint8_t, 16>>(), as_operation<Dot2<uint16_t, int8_t, 16>>(),
       as_operation<Dot2<int16_t, uint8_t, 16>>(), as_operation<Dot2<int16_t, int8_t, 16>>()}};
  emit_operation(l, kDots[four ? 0 : high ? 2 : 1][2 * a + b], Type::b32);
}

void lower_field(Lowering& l) {
  const std::string_view op = l.op();
  const Type t = l.type();
  const bool wide = t == Type::b64;
  if (op == "bfe") {
    allow(l, {});
    return emit_counts(l,
                       by_signedness_and_size(t, each<ExtractField<int32_t>>, each<ExtractField<uint32_t>>,
                                              each<ExtractField<int64_t>>, each<ExtractField<uint64_t>>),
                       3, 1);
  }
  if (op == "bfi") {
    allow(l, {});
    if (t != Type::b32 && !wide) l.unknown();
    return emit_counts(l, wide ? each<InsertField<uint64_t>> : each<InsertField<uint32_t>>, 4, 2);
  }
  if (op == "bfind") {
    allow(l, {"shiftamt"});
    return emit_counts(l,
                       l.has("shiftamt")
                           ? by_signedness_and_size(t, each<FindBit<int32_t, true>>, each<FindBit<uint32_t, true>>,
                                                    each<FindBit<int64_t, true>>, each<FindBit<uint64_t, true>>)
                           : by_signedness_and_size(t, each<FindBit<int32_t, false>>, each<FindBit<uint32_t, false>>,
                                                    each<FindBit<int64_t, false>>, each<FindBit<uint64_t, false>>),
                       1, 1);
  }
  // bmsk and szext
  allow(l, {"clamp", "wrap"});
  const bool clamps = l.has("clamp");
  if (clamps == l.has("wrap")) l.unknown();
  if (op == "bmsk" && t == Type::b32) return emit_counts(l, clamps ? each<BitMask<true>> : each<BitMask<false>>, 2, 2);
  if (op == "szext" && t == Type::s32)
    return emit_counts(l, clamps ? each<Extend<int32_t, true>> : each<Extend<int32_t, false>>, 2, 1);
  if (op == "szext" && t == Type::u32)
    return emit_counts(l, clamps ? each<Extend<uint32_t, true>> : each<Extend<uint32_t, false>>, 2, 1);
  l.unknown();
}

void lower_count(Lowering& l) {
  allow(l, {});
  const std::string_view op = l.op();
  const bool wide = l.type() == Type::b64;
  if (!wide && l.type() != Type::b32) l.unknown();
  if (op == "brev") return emit_counts(l, wide ? each<Reverse<uint64_t>> : each<Reverse<uint32_t>>, 1, 1);
  if (op == "popc") return emit_counts(l, wide ? each<CountOnes<uint64_t>> : each<CountOnes<uint32_t>>, 1, 1);
  if (op == "clz") return emit_counts(l, wide ? each<CountZeros<uint64_t>> : each<CountZeros<uint32_t>>, 1, 1);
  if (wide) l.unknown();
  emit_counts(l, each<FindSet>, 3, 3);
}

}  // namespace

void lower_bits(Lowering& l) {
  const std::string_view op = l.op();
  if (op == "lop3") return lower_lop3(l);
  if (op == "shl" || op == "shr") {
    allow(l, {});
    return emit_counts(l, shift_handler(op == "shl", l.type()), 2, 1);
  }
  if (op == "shf") return lower_funnel(l);
  if (op == "prmt") return lower_permute(l);
  if (op == "dp4a" || op == "dp2a") return lower_dot(l);
  if (op == "bfe" || op == "bfi" || op == "bfind" || op == "bmsk" || op == "szext") return lower_field(l);
  if (op == "brev" || op == "popc" || op == "clz" || op == "fns") return lower_count(l);
  lower_logic(l);
}

}  // namespace emulator::ptx
