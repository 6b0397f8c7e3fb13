// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/ptx/instructions/arithmetic.h"

// SIMD video instructions: four bytes or two halves of a word at once (PTX ISA, "SIMD Video Instructions").

namespace emulator::ptx {
namespace {

enum Kind : uint32_t { kAdd, kSub, kAverage, kDistance, kMin, kMax, kKinds };
constexpr std::string_view kNames[kKinds] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};

/// One word of three: the parts of c are replaced by those of the result or, with .add, c grows by all of them.
struct Video {
  uint32_t kind, bits;
  bool a_signed, b_signed, d_signed, saturates, accumulates;
  explicit Video(const Instruction& i)
      : kind(i.imm & 7),
        bits(i.imm & 8 ? 16 : 8),
        a_signed(i.imm & 16),
        b_signed(i.imm & 32),
        d_signed(i.imm & 64),
        saturates(i.imm & 128),
        accumulates(i.imm & 256) {}

  int32_t part(uint32_t word, uint32_t at, bool is_signed) const {
    const uint32_t up = word << (32 - bits - at);
    return is_signed ? static_cast<int32_t>(up) >> (32 - bits) : static_cast<int32_t>(up >> (32 - bits));
  }
  int32_t of_parts(int32_t a, int32_t b) const {
    switch (kind) {
      case kAdd:
        return a + b;
      case kSub:
        return a - b;
      case kAverage:  // half way: away from zero
        return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
      case kDistance:
        return a < b ? b - a : a - b;
      case kMin:
        return std::min(a, b);
      default:
        return std::max(a, b);
    }
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const int32_t least = d_signed ? -(1 << (bits - 1)) : 0, most = d_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    uint32_t d = accumulates ? c : 0;
    for (uint32_t at = 0; at < 32; at += bits) {
      int32_t r = of_parts(part(a, at, a_signed), part(b, at, b_signed));
      if (saturates) r = std::clamp(r, least, most);
      d += accumulates ? static_cast<uint32_t>(r) : (static_cast<uint32_t>(r) & ((1u << bits) - 1)) << at;
    }
    return d;
  }
};

}  // namespace

void lower_video(Lowering& l) {
  allow(l, {"sat", "add"});
  const std::string_view name = l.op().substr(0, l.op().size() - 1);
  uint64_t form = static_cast<uint64_t>(std::ranges::find(kNames, name) - std::begin(kNames));
  if (l.op().back() == '2') form |= 8;
  const auto is_signed = [&](int i) {
    if (l.type(i) != Type::s32 && l.type(i) != Type::u32) l.unknown("three types, each .s32 or .u32");
    return l.type(i) == Type::s32;
  };
  form |= uint64_t{is_signed(1)} << 4 | uint64_t{is_signed(2)} << 5 | uint64_t{is_signed(0)} << 6;
  form |= uint64_t{l.has("sat")} << 7 | uint64_t{l.has("add")} << 8;
  for (size_t i = 0; i < l.operands(); ++i)
    if (!l.operand(i).name.empty()) l.unknown("a mask or a selection of parts");
  emit_operation(l, as_operation<Video>(), Type::b32).imm = form;
}

}  // namespace emulator::ptx
