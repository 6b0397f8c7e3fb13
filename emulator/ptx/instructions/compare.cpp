// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/arithmetic.h"

// setp, set and testp of all types (PTX ISA 9.7.5 to 9.7.7, 9.7.3.1).

namespace emulator::ptx {
namespace {

enum class Relation : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <class T, Relation relation>
constexpr bool holds(T a, T b) {
  switch (relation) {
    case Relation::eq:
      return a == b;
    // Ordered: a NaN is not "not equal" here, but to .neu.
    case Relation::ne:
      return a < b || a > b;
    case Relation::lt:
      return a < b;
    case Relation::le:
      return a <= b;
    case Relation::gt:
      return a > b;
    case Relation::ge:
      return a >= b;
    case Relation::equ:
      return !(a < b || a > b);
    case Relation::neu:
      return a != b;
    case Relation::ltu:
      return !(a >= b);
    case Relation::leu:
      return !(a > b);
    case Relation::gtu:
      return !(a <= b);
    case Relation::geu:
      return !(a < b);
    case Relation::num:
      return a == a && b == b;
    case Relation::nan:
      return a != a || b != b;
  }
}

/// A lane's value as a type that C++ compares: bit patterns of halves become f32.
struct AsIs {
  template <class T>
  static T value(T v) {
    return v;
  }
};
struct Flushed {
  static float value(float v) { return flushed(v); }
};
struct F16 {
  static float value(uint16_t v) { return f32_of_f16(v); }
};
struct FlushedF16 {  // subnormal halves are normal f32
  static float value(uint16_t v) { return f32_of_f16((v & 0x7c00) == 0 ? v & 0x8000u : v); }
};
struct Bf16 {
  static float value(uint16_t v) { return f32_of_bf16(v); }
};
/// The upper half of a packed type.
template <class Half>
struct Upper {
  static float value(uint32_t v) { return Half::value(static_cast<uint16_t>(v >> 16)); }
};
template <class Half>
struct Lower {
  static float value(uint32_t v) { return Half::value(static_cast<uint16_t>(v)); }
};

template <class T, class As, Relation relation>
struct Comparison {
  bool operator()(T a, T b) const { return holds<decltype(As::value(a)), relation>(As::value(a), As::value(b)); }
};

using Compare = uint32_t (*)(const Warp&, Ref, Ref);

/// The usual setp: one predicate, nothing to combine with.
template <class F>
const Instruction* setp(Warp& w, const Instruction* i) {
  w.set_predicate(i->d, w.lanes(i), lanes_where<F>(w, i->a, i->b));
  return i + 1;
}

struct Chosen {
  Compare compare = nullptr;
  Handler setp = nullptr;
};
template <class F>
constexpr Chosen kChosen{lanes_where<F>, setp<F>};

struct Names {
  std::string_view name;
  Relation relation;
};
constexpr Names kRelations[] = {
    {"eq", Relation::eq},   {"ne", Relation::ne},   {"lt", Relation::lt},   {"le", Relation::le},
    {"gt", Relation::gt},   {"ge", Relation::ge},   {"lo", Relation::lt},   {"ls", Relation::le},
    {"hi", Relation::gt},   {"hs", Relation::ge},   {"equ", Relation::equ}, {"neu", Relation::neu},
    {"ltu", Relation::ltu}, {"leu", Relation::leu}, {"gtu", Relation::gtu}, {"geu", Relation::geu},
    {"num", Relation::num}, {"nan", Relation::nan},
};

template <class T, class As = AsIs>
Chosen choose(Relation r, bool is_float) {
  switch (r) {
    case Relation::eq:
      return kChosen<Comparison<T, As, Relation::eq>>;
    case Relation::ne:
      return kChosen<Comparison<T, As, Relation::ne>>;
    case Relation::lt:
      return kChosen<Comparison<T, As, Relation::lt>>;
    case Relation::le:
      return kChosen<Comparison<T, As, Relation::le>>;
    case Relation::gt:
      return kChosen<Comparison<T, As, Relation::gt>>;
    case Relation::ge:
      return kChosen<Comparison<T, As, Relation::ge>>;
    default:
      break;
  }
  if (!is_float) return {};
  if constexpr (!std::is_same_v<As, AsIs> || std::is_floating_point_v<T>) {
    switch (r) {
      case Relation::equ:
        return kChosen<Comparison<T, As, Relation::equ>>;
      case Relation::neu:
        return kChosen<Comparison<T, As, Relation::neu>>;
      case Relation::ltu:
        return kChosen<Comparison<T, As, Relation::ltu>>;
      case Relation::leu:
        return kChosen<Comparison<T, As, Relation::leu>>;
      case Relation::gtu:
        return kChosen<Comparison<T, As, Relation::gtu>>;
      case Relation::geu:
        return kChosen<Comparison<T, As, Relation::geu>>;
      case Relation::num:
        return kChosen<Comparison<T, As, Relation::num>>;
      case Relation::nan:
        return kChosen<Comparison<T, As, Relation::nan>>;
      default:
        break;
    }
  }
  return {};
}

/// The comparison of a type; of packed ones that of the upper half with `upper`.
Chosen choose(Type t, Relation r, bool ftz, bool upper) {
  switch (t) {
    case Type::b16:
    case Type::b32:
    case Type::b64:
      if (r != Relation::eq && r != Relation::ne) return {};
      return t == Type::b16   ? choose<uint16_t>(r, false)
             : t == Type::b32 ? choose<uint32_t>(r, false)
                              : choose<uint64_t>(r, false);
    case Type::u16:
      return choose<uint16_t>(r, false);
    case Type::s16:
      return choose<int16_t>(r, false);
    case Type::u32:
      return choose<uint32_t>(r, false);
    case Type::s32:
      return choose<int32_t>(r, false);
    case Type::u64:
      return choose<uint64_t>(r, false);
    case Type::s64:
      return choose<int64_t>(r, false);
    case Type::f32:
      return ftz ? choose<float, Flushed>(r, true) : choose<float>(r, true);
    case Type::f64:
      return choose<double>(r, true);
    case Type::f16:
      return ftz ? choose<uint16_t, FlushedF16>(r, true) : choose<uint16_t, F16>(r, true);
    case Type::bf16:
      return choose<uint16_t, Bf16>(r, true);
    case Type::f16x2:
      if (ftz)
        return upper ? choose<uint32_t, Upper<FlushedF16>>(r, true) : choose<uint32_t, Lower<FlushedF16>>(r, true);
      return upper ? choose<uint32_t, Upper<F16>>(r, true) : choose<uint32_t, Lower<F16>>(r, true);
    case Type::bf16x2:
      return upper ? choose<uint32_t, Upper<Bf16>>(r, true) : choose<uint32_t, Lower<Bf16>>(r, true);
    default:
      return {};
  }
}

enum class Logic : uint8_t { none, conjunction, disjunction, exclusive };

/// A comparison with all its operands.
struct Full {
  Compare low = nullptr, high = nullptr;  ///< high: of the upper half of packed types
  Logic logic = Logic::none;
  Ref c = kNoRef;
  bool c_negated = false;
  Ref q = kNoRef;          ///< setp: the predicate for the negated comparison, or for the upper half
  uint64_t when_true = 0;  ///< set: the bits, of the lower half where there are two

  uint32_t combined(const Warp& w, uint32_t compared) const {
    if (logic == Logic::none) return compared;
    const uint32_t p = w.predicate(c, c_negated);
    return logic == Logic::conjunction ? compared & p : logic == Logic::disjunction ? compared | p : compared ^ p;
  }
};

const Instruction* setp_full(Warp& w, const Instruction* i) {
  const Full& f = *static_cast<const Full*>(i->more);
  const uint32_t lanes = w.lanes(i), low = f.low(w, i->a, i->b);
  // Both before one is written: c may be p or q.
  const uint32_t p = f.combined(w, low), q = f.combined(w, f.high != nullptr ? f.high(w, i->a, i->b) : ~low);
  w.set_predicate(i->d, lanes, p);
  w.set_predicate(f.q, lanes, q);
  return i + 1;
}

const Instruction* set_full(Warp& w, const Instruction* i) {
  const Full& f = *static_cast<const Full*>(i->more);
  const uint32_t low = f.combined(w, f.low(w, i->a, i->b));
  const uint32_t high = f.high != nullptr ? f.combined(w, f.high(w, i->a, i->b)) : 0;
  const auto value = static_cast<uint32_t>(f.when_true);
  alignas(64) uint32_t r[kLanes];
  EMULATOR_EACH_LANE r[l] = ((low & kLaneBits<uint32_t>.bit[l]) != 0 ? value : 0) |
                            ((high & kLaneBits<uint32_t>.bit[l]) != 0 ? value << 16 : 0);
  blend(w.out<uint32_t>(i->d), r, w.lanes(i));
  return i + 1;
}

bool is_packed(Type t) { return t == Type::f16x2 || t == Type::bf16x2; }

/// The comparison that the modifiers name.
Full comparison(Lowering& l, Type t, Chosen* plain) {
  const Relation* relation = nullptr;
  Full f;
  for (const std::string_view mod : l.mods()) {
    const Relation* named = nullptr;
    for (const Names& n : kRelations)
      if (n.name == mod) named = &n.relation;
    const Logic logic = mod == "and"   ? Logic::conjunction
                        : mod == "or"  ? Logic::disjunction
                        : mod == "xor" ? Logic::exclusive
                                       : Logic::none;
    if (named != nullptr && relation == nullptr)
      relation = named;
    else if (logic != Logic::none && f.logic == Logic::none)
      f.logic = logic;
    else if (mod != "ftz" && type_of(mod) == Type::none)
      l.unknown("modifier ." + std::string(mod));
  }
  if (relation == nullptr) l.unknown("no comparison");
  const bool ftz = l.has("ftz");
  if (ftz && t != Type::f32 && t != Type::f16 && t != Type::f16x2) l.unknown(".ftz");
  *plain = choose(t, *relation, ftz, false);
  f.low = plain->compare;
  if (is_packed(t)) f.high = choose(t, *relation, ftz, true).compare;
  if (f.low == nullptr) l.unknown("comparison of this type");
  expect_operands(l, f.logic == Logic::none ? 3 : 4);
  if (f.logic != Logic::none) f.c = l.predicate(l.operand(3), &f.c_negated);
  return f;
}

template <class F>
const Instruction* test(Warp& w, const Instruction* i) {
  w.set_predicate(i->d, w.lanes(i), lanes_where<F>(w, i->a, i->a));
  return i + 1;
}
enum class Property : uint8_t { finite, infinite, number, not_a_number, normal, subnormal };
template <class Bits, Property property>
struct Has {
  bool operator()(Bits v, Bits) const {
    constexpr Bits infinity = sizeof(Bits) == 8 ? static_cast<Bits>(0x7ff0000000000000) : Bits{0x7f800000};
    constexpr Bits smallest = sizeof(Bits) == 8 ? static_cast<Bits>(0x0010000000000000) : Bits{0x00800000};
    const Bits m = v & static_cast<Bits>(~Bits{0} >> 1);
    switch (property) {
      case Property::finite:
        return m < infinity;
      case Property::infinite:
        return m == infinity;
      case Property::number:
        return m <= infinity;
      case Property::not_a_number:
        return m > infinity;
      case Property::normal:
        return m >= smallest && m < infinity;
      case Property::subnormal:
        return m != 0 && m < smallest;
    }
  }
};
template <class Bits>
Handler test_handler(const Lowering& l) {
  if (l.has("finite")) return test<Has<Bits, Property::finite>>;
  if (l.has("infinite")) return test<Has<Bits, Property::infinite>>;
  if (l.has("number")) return test<Has<Bits, Property::number>>;
  if (l.has("notanumber")) return test<Has<Bits, Property::not_a_number>>;
  if (l.has("normal")) return test<Has<Bits, Property::normal>>;
  if (l.has("subnormal")) return test<Has<Bits, Property::subnormal>>;
  return nullptr;
}

}  // namespace

void lower_setp(Lowering& l) {
  const Type t = l.type();
  if (l.type(1) != Type::none) l.unknown("two types");
  Chosen plain;
  Full f = comparison(l, t, &plain);
  const Ref a = l.source(l.operand(1), t), b = l.source(l.operand(2), t);
  const Operand& out = l.operand(0);
  const bool pair = out.kind == Operand::Kind::pair;
  if (pair && out.parts.size() != 2) l.unknown("destinations");
  if (f.high != nullptr && !pair) l.unknown("one predicate for two comparisons");
  const Ref p = l.predicate(pair ? out.parts[0] : out);
  if (pair) f.q = l.predicate(out.parts[1]);
  if (!pair && f.logic == Logic::none) {
    l.emit(plain.setp, p, a, b);
  } else {
    l.emit(setp_full, p, a, b).more = l.keep(f);
  }
}

void lower_set(Lowering& l) {
  const Type to = l.type(0), t = l.type(1);
  if (t == Type::none || l.type(2) != Type::none) l.unknown("types");
  Chosen plain;
  Full f = comparison(l, t, &plain);
  switch (to) {
    case Type::u32:
    case Type::s32:
      f.when_true = f.high != nullptr ? 0xffff : 0xffffffff;
      break;
    case Type::u16:
    case Type::s16:
      f.when_true = 0xffff;
      break;
    case Type::f32:
      f.when_true = 0x3f800000;
      break;
    case Type::f16:
    case Type::f16x2:
      f.when_true = 0x3c00;
      break;
    case Type::bf16:
    case Type::bf16x2:
      f.when_true = 0x3f80;
      break;
    default:
      l.unknown("destination type");
  }
  if (is_packed(to) ? to != t : is_packed(t) && to != Type::u32 && to != Type::s32) l.unknown("pair of types");
  const Ref a = l.source(l.operand(1), t), b = l.source(l.operand(2), t);
  l.emit(set_full, result(l), a, b).more = l.keep(f);
}

void lower_testp(Lowering& l) {
  allow(l, {"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  expect_operands(l, 2);
  const Type t = l.type();
  const Handler run = t == Type::f32 ? test_handler<uint32_t>(l) : t == Type::f64 ? test_handler<uint64_t>(l) : nullptr;
  if (run == nullptr) l.unknown();
  const Ref a = l.source(l.operand(1), t);
  l.emit(run, l.predicate(l.operand(0)), a);
}

}  // namespace emulator::ptx
