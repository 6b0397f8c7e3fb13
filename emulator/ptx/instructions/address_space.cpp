// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/arithmetic.h"

// cvta and isspacep: generic addresses are those of the process, with windows for shared and local memory (warp.h).

namespace emulator::ptx {
namespace {

struct Offset {
  uint64_t offset;
  explicit Offset(const Instruction& i) : offset(i.imm) {}
  uint64_t operator()(uint64_t a) const { return a + offset; }
};

/// Kernel parameters lie where the grid has them; i->imm is 0 to generic, 1 from generic.
const Instruction* convert_parameter(Warp& w, const Instruction* i) {
  const auto base = reinterpret_cast<uint64_t>(w.block->grid->parameters);
  const uint64_t offset = i->imm != 0 ? 0 - base : base;
  const uint64_t* const a = w.in<uint64_t>(i->a);
  alignas(64) uint64_t r[kLanes];
  EMULATOR_EACH_LANE r[l] = a[l] + offset;
  blend(w.out<uint64_t>(i->d), r, w.lanes(i));
  return i + 1;
}

enum class Where : uint8_t { unknown, global, shared_block, shared_cluster, local, constant, parameter };
Where space_of(const Lowering& l) {
  if (l.has("global")) return Where::global;
  if (l.has("shared") || l.has("shared::cta")) return Where::shared_block;
  if (l.has("shared::cluster")) return Where::shared_cluster;
  if (l.has("local")) return Where::local;
  if (l.has("const")) return Where::constant;
  if (l.has("param") || l.has("param::entry")) return Where::parameter;
  return Where::unknown;
}

template <Where where>
const Instruction* is_space(Warp& w, const Instruction* i) {
  const uint64_t* const a = w.in<uint64_t>(i->a);
  const auto parameters = reinterpret_cast<uint64_t>(w.block->grid->parameters);
  const uint64_t bytes = w.kernel().parameter_bytes, own = uint64_t{w.block->rank} + 1;
  uint32_t found = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t window = a[l] & kWindowMask, rank = (a[l] & ~kWindowMask) >> kRankShift;
    const bool is_parameter = a[l] - parameters < bytes;
    bool holds;
    switch (where) {
      case Where::shared_block:
        holds = window == kSharedWindow && (rank == 0 || rank == own);
        break;
      case Where::shared_cluster:
        holds = window == kSharedWindow;
        break;
      case Where::local:
        holds = window == kLocalWindow;
        break;
      case Where::parameter:
        holds = is_parameter;
        break;
      default:
        holds = window == 0 && !is_parameter;
        break;
    }
    found |= uint32_t{holds} << l;
  }
  w.set_predicate(i->d, w.lanes(i), found);
  return i + 1;
}

}  // namespace

void lower_cvta(Lowering& l) {
  allow(l, {"to", "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry"});
  expect_operands(l, 2);
  if (l.type() != Type::u64) l.unknown("addresses of 32 bits");
  const bool from_generic = l.has("to");
  const Ref a = l.source(l.operand(1), Type::u64);
  uint64_t window = 0;
  switch (space_of(l)) {
    case Where::global:
    case Where::constant:
      break;
    case Where::shared_block:
    case Where::shared_cluster:
      window = kSharedWindow;
      break;
    case Where::local:
      window = kLocalWindow;
      break;
    case Where::parameter:
      l.emit(convert_parameter, result(l), a).imm = from_generic ? 1 : 0;
      return;
    case Where::unknown:
      l.unknown("no space");
  }
  l.emit(each<Offset>, result(l), a).imm = from_generic ? 0 - window : window;
}

void lower_isspacep(Lowering& l) {
  allow(l, {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
  expect_operands(l, 2);
  Handler run = nullptr;
  switch (space_of(l)) {
    case Where::global:
      run = is_space<Where::global>;
      break;
    case Where::shared_block:
      run = is_space<Where::shared_block>;
      break;
    case Where::shared_cluster:
      run = is_space<Where::shared_cluster>;
      break;
    case Where::local:
      run = is_space<Where::local>;
      break;
    case Where::parameter:
      run = is_space<Where::parameter>;
      break;
    default:
      l.unknown("no space");
  }
  if (l.register_bytes(l.operand(1)) == 4) l.unknown("addresses of 32 bits");
  const Ref a = l.source(l.operand(1), Type::u64);
  l.emit(run, l.predicate(l.operand(0)), a);
}

}  // namespace emulator::ptx
