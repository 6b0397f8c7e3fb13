// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/arithmetic.h"

// mov, with packing and unpacking of vectors, selp and slct (PTX ISA 9.7.9.3, 9.7.7).

namespace emulator::ptx {
namespace {

template <class T>
const Instruction* copy(Warp& w, const Instruction* i) {
  const T* const a = w.in<T>(i->a);
  T* const d = w.out<T>(i->d);
  const uint32_t lanes = w.lanes(i);
  if (lanes == kAllLanes) {
    EMULATOR_EACH_LANE d[l] = a[l];
  } else {
    blend(d, a, lanes);
  }
  return i + 1;
}
struct Bits128 {
  uint64_t low, high;
};
const Instruction* copy_128(Warp& w, const Instruction* i) {
  const Bits128* const a = w.in<Bits128>(i->a);
  Bits128* const d = w.out<Bits128>(i->d);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    d[l] = a[l];
  }
  return i + 1;
}

struct PackHalves {
  uint32_t operator()(uint16_t low, uint16_t high) const { return low | uint32_t{high} << 16; }
};
struct PackWords {
  uint64_t operator()(uint32_t low, uint32_t high) const { return low | uint64_t{high} << 32; }
};

/// Two parts of a register. Either may be the sink, and a part may lie where the source lay.
template <class Whole, class Part>
const Instruction* unpack_two(Warp& w, const Instruction* i) {
  const Whole* const a = w.in<Whole>(i->a);
  alignas(64) Stored<Part> low[kLanes], high[kLanes];
  EMULATOR_EACH_LANE {
    low[l] = static_cast<Part>(a[l]);
    high[l] = static_cast<Part>(a[l] >> (8 * sizeof(Part)));
  }
  const uint32_t lanes = w.lanes(i);
  if (i->d != kNoRef) blend(w.out<Stored<Part>>(i->d), low, lanes);
  if (i->b != kNoRef) blend(w.out<Stored<Part>>(i->b), high, lanes);
  return i + 1;
}

/// Any vector: `bytes` of a part, lowest first.
struct Parts {
  std::vector<Ref> parts;
  uint32_t bytes, whole_bytes;
};
uint32_t lane_bytes(uint32_t bytes) { return bytes < 4 ? 4 : bytes; }

const Instruction* pack_any(Warp& w, const Instruction* i) {
  const Parts& p = *static_cast<const Parts*>(i->more);
  const uint32_t step = lane_bytes(p.bytes), whole_step = lane_bytes(p.whole_bytes);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(left));
    char whole[16] = {};
    for (size_t n = 0; n < p.parts.size(); ++n)
      std::memcpy(whole + n * p.bytes, w.in<char>(p.parts[n]) + l * step, p.bytes);
    std::memcpy(w.out<char>(i->d) + l * whole_step, whole, whole_step);
  }
  return i + 1;
}
const Instruction* unpack_any(Warp& w, const Instruction* i) {
  const Parts& p = *static_cast<const Parts*>(i->more);
  const uint32_t step = lane_bytes(p.bytes), whole_step = lane_bytes(p.whole_bytes);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(left));
    char whole[16] = {};
    std::memcpy(whole, w.in<char>(i->a) + l * whole_step, whole_step);
    for (size_t n = 0; n < p.parts.size(); ++n) {
      if (p.parts[n] == kNoRef) continue;
      char part[16] = {};
      std::memcpy(part, whole + n * p.bytes, p.bytes);
      std::memcpy(w.out<char>(p.parts[n]) + l * step, part, step);
    }
  }
  return i + 1;
}

Type bits_type(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return Type::b8;
    case 2:
      return Type::b16;
    case 4:
      return Type::b32;
    case 8:
      return Type::b64;
    default:
      return Type::none;
  }
}

/// The width of a vector's parts, which fill the whole.
uint32_t part_bytes(const Lowering& l, const Operand& vector, uint32_t whole) {
  const auto count = static_cast<uint32_t>(vector.parts.size());
  if (count < 2 || whole % count != 0 || bits_type(whole / count) == Type::none) l.unknown("vector");
  return whole / count;
}

void lower_pack(Lowering& l, Type t) {
  const Operand& vector = l.operand(1);
  Parts p;
  p.whole_bytes = static_cast<uint32_t>(bytes_of(t));
  p.bytes = part_bytes(l, vector, p.whole_bytes);
  for (const Operand& part : vector.parts) p.parts.push_back(l.source(part, bits_type(p.bytes)));
  const Ref d = result(l);
  if (p.parts.size() == 2 && p.whole_bytes == 4) {
    l.emit(each<PackHalves>, d, p.parts[0], p.parts[1]);
  } else if (p.parts.size() == 2 && p.whole_bytes == 8) {
    l.emit(each<PackWords>, d, p.parts[0], p.parts[1]);
  } else {
    l.emit(pack_any, d).more = l.keep(p);
  }
}

void lower_unpack(Lowering& l, Type t) {
  const Operand& vector = l.operand(0);
  Parts p;
  p.whole_bytes = static_cast<uint32_t>(bytes_of(t));
  p.bytes = part_bytes(l, vector, p.whole_bytes);
  const Ref a = l.source(l.operand(1), t);
  for (const Operand& part : vector.parts) p.parts.push_back(l.destination(part));
  if (p.parts.size() == 2 && p.whole_bytes <= 8 && p.whole_bytes >= 4) {
    l.emit(p.whole_bytes == 4 ? unpack_two<uint32_t, uint16_t> : unpack_two<uint64_t, uint32_t>, p.parts[0], a,
           p.parts[1]);
  } else {
    l.emit(unpack_any, kNoRef, a).more = l.keep(p);
  }
}

constexpr uint32_t kNegated = kOwnFlags;

const Instruction* copy_predicate(Warp& w, const Instruction* i) {
  w.set_predicate(i->d, w.lanes(i), w.predicate(i->a, (i->flags & kNegated) != 0));
  return i + 1;
}
void lower_mov(Lowering& l) {
  allow(l, {});
  expect_operands(l, 2);
  const Type t = l.type();
  const Operand& from = l.operand(1);
  if (l.type(1) != Type::none) l.unknown("two types");
  if (from.kind == Operand::Kind::special) return lower_special_register(l);
  if (t == Type::pred) {
    const Ref d = l.predicate(l.operand(0));
    bool negated = false;
    const Ref a = l.predicate(from, &negated);
    l.emit(copy_predicate, d, a).flags |= negated ? kNegated : 0u;
    return;
  }
  if (from.kind == Operand::Kind::vector) return lower_pack(l, t);
  if (l.operand(0).kind == Operand::Kind::vector) return lower_unpack(l, t);
  const int bytes = bytes_of(t);
  const Ref a = l.source(from, t);
  l.emit(bytes == 16 ? copy_128 : bytes == 8 ? copy<uint64_t> : copy<uint32_t>, result(l), a);
}

template <class T>
const Instruction* select(Warp& w, const Instruction* i) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const T* const a = w.in<T>(i->a);
  const T* const b = w.in<T>(i->b);
  T* const d = w.out<T>(i->d);
  const uint32_t p = w.predicate(i->c, (i->flags & kNegated) != 0), lanes = w.lanes(i);
  if (lanes == kAllLanes) {
    EMULATOR_EACH_LANE d[l] = (kLaneBits<Word>.bit[l] & p) != 0 ? a[l] : b[l];
  } else {
    EMULATOR_EACH_LANE {
      const T chosen = (kLaneBits<Word>.bit[l] & p) != 0 ? a[l] : b[l];
      d[l] = (kLaneBits<Word>.bit[l] & lanes) != 0 ? chosen : d[l];
    }
  }
  return i + 1;
}

void lower_selp(Lowering& l) {
  allow(l, {});
  expect_operands(l, 4);
  const Type t = l.type();
  const int bytes = bytes_of(t);
  if (bytes < 2 || bytes > 8) l.unknown();
  bool negated = false;
  const Ref a = l.source(l.operand(1), t), b = l.source(l.operand(2), t), p = l.predicate(l.operand(3), &negated);
  l.emit(bytes == 8 ? select<uint64_t> : select<uint32_t>, result(l), a, b, p).flags |= negated ? kNegated : 0u;
}

template <class T>
struct SelectBySign {
  T operator()(T a, T b, int32_t c) const { return c >= 0 ? a : b; }
};
template <class T, bool ftz>
struct SelectByF32 {
  T operator()(T a, T b, float c) const { return (ftz ? flushed(c) : c) >= 0 ? a : b; }
};

void lower_slct(Lowering& l) {
  allow(l, {"ftz"});
  expect_operands(l, 4);
  const Type t = l.type(0), by = l.type(1);
  const int bytes = bytes_of(t);
  const bool ftz = l.has("ftz"), wide = bytes == 8;
  if (bytes < 2 || bytes > 8 || (by != Type::f32 && (by != Type::s32 || ftz))) l.unknown();
  const Handler run = by == Type::s32 ? (wide ? each<SelectBySign<uint64_t>> : each<SelectBySign<uint32_t>>)
                      : ftz           ? (wide ? each<SelectByF32<uint64_t, true>> : each<SelectByF32<uint32_t, true>>)
                            : (wide ? each<SelectByF32<uint64_t, false>> : each<SelectByF32<uint32_t, false>>);
  const Ref a = l.source(l.operand(1), t), b = l.source(l.operand(2), t), c = l.source(l.operand(3), by);
  l.emit(run, result(l), a, b, c);
}

}  // namespace

Family move_family() {
  static constexpr Opcode kOpcodes[] = {{"mov", lower_mov}, {"selp", lower_selp}, {"slct", lower_slct}};
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
