// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emulator/machine/fault.h"
#include "emulator/ptx/lower/lowering_state.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

bool fits(uint64_t value, int bytes) { return bytes >= 8 || value >> (8 * bytes) == 0; }

}  // namespace

Ref Lowering::constant(uint64_t bits, int bytes) {
  if (bytes < 8) bits &= (uint64_t{1} << 8 * bytes) - 1;
  const int lane = std::max(4, bytes);
  const auto [known, is_new] = state_->constant_refs.try_emplace({bits, lane}, Ref{0});
  if (!is_new) return known->second;
  std::vector<char>& all = state_->constants;
  const size_t at = all.size();
  if (at + 512 >= kNoRef) unknown("too many constants");
  all.resize(at + static_cast<size_t>(lane) * kLanes);
  for (size_t l = 0; l < kLanes; ++l)
    std::memcpy(all.data() + at + l * static_cast<size_t>(lane), &bits, static_cast<size_t>(std::min(lane, 8)));
  return known->second = static_cast<Ref>(at) | kConstant;
}

Ref Lowering::source(const Operand& o, Type type) {
  switch (o.kind) {
    case Kind::reg: {
      const Type declared = register_type(o);
      if (!o.name.empty()) unknown(cat("selector .", o.name));
      if (o.negated && declared != Type::pred) unknown("a '!' before what is no predicate");
      if (type == Type::pred || declared == Type::pred) {
        if (type != declared) unknown("a predicate among other types");
        return predicate(o);
      }
      if (type != Type::none && place_bytes(declared) != place_bytes(type))
        unknown(cat("register ", state_->body.registers[static_cast<size_t>(o.reg)].name, " has another width"));
      return state_->places.place[static_cast<size_t>(o.reg)];
    }
    case Kind::integer:
      if (type == Type::pred) return predicate(o);
      if (type == Type::none) unknown("an integer without a type");
      if (type == Type::f32 || type == Type::f64) unknown("an integer where a real number is expected");
      return constant(static_cast<uint64_t>(o.value), bytes_of(type));
    case Kind::real: {
      const auto bits = static_cast<uint64_t>(o.value);
      const int bytes = bytes_of(type);
      if (bytes == 4)
        return constant(o.single ? bits : std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits))), 4);
      if (bytes != 8) unknown("a real number of another width");
      if (!o.single) return constant(bits, 8);
      return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))}), 8);
    }
    case Kind::symbol: {
      const Symbols::Place* const place = state_->symbols->find(o);
      const ptx::Function* const callee = place == nullptr ? state_->module.function(o.name) : nullptr;
      if (place == nullptr && callee == nullptr) unknown(cat("no variable ", o.name));
      const uint64_t begin = place != nullptr ? place->address : state_->module.function_address(*callee);
      const uint64_t address = begin + static_cast<uint64_t>(o.value);
      const int bytes = bytes_of(type);
      if (bytes < 4 || !fits(address, bytes)) unknown(cat("the address of ", o.name, " does not fit"));
      return constant(address, bytes);
    }
    case Kind::special:
      unknown(cat("special register %", o.name, " as an operand"));
    case Kind::none:
      unknown("an operand is missing");
    default:
      unknown("an operand of another kind");
  }
}

Ref Lowering::destination(const Operand& o) {
  if (o.kind == Kind::sink) return kNoRef;
  if (o.kind != Kind::reg) unknown("a destination that is no register");
  if (o.negated || !o.name.empty()) unknown("a destination that is not a whole register");
  return state_->places.place[static_cast<size_t>(o.reg)];
}

Ref Lowering::predicate(const Operand& o, bool* negated) {
  if (negated != nullptr) *negated = o.negated;
  if (o.kind == Kind::sink) return kNoRef;
  if (o.kind == Kind::integer) {
    // A literal is a word that stays 0, read negated for true.
    if (o.value != 0 && negated == nullptr) unknown("a literal where a predicate is expected");
    if (negated != nullptr) *negated = o.value != 0;
    if (state_->false_predicate == kNoRef) state_->false_predicate = kernel().predicates++;
    return state_->false_predicate;
  }
  if (register_type(o) != Type::pred) unknown("a predicate is expected");
  if (o.negated && negated == nullptr) unknown("a negated predicate");
  return state_->places.place[static_cast<size_t>(o.reg)];
}

Lowering::Address Lowering::address(const Operand& o) {
  if (o.kind != Kind::address) unknown("an address is expected");
  const Operand& base = o.parts[0];
  Address found{.base = kNoRef, .base_bytes = 8, .offset = o.value, .is_constant = true, .base_value = 0};
  if (base.kind == Kind::reg) {
    found.is_constant = false;
    found.base_bytes = register_bytes(base);
    if ((found.base_bytes != 4 && found.base_bytes != 8) || !base.name.empty())
      unknown("an address in a register of other than 32 or 64 bits");
    found.base = state_->places.place[static_cast<size_t>(base.reg)];
    return found;
  }
  if (base.kind == Kind::symbol) {
    const Symbols::Place* const place = state_->symbols->find(base);
    if (place == nullptr) unknown(cat("no variable ", base.name));
    found.base_value = place->address;
  } else {
    found.base_value = static_cast<uint64_t>(base.value);
  }
  found.base = constant(found.base_value, 8);
  return found;
}

namespace {

/// [ … ] as a register and an offset, through moves, cvta and sums with constants of registers that are written once;
/// -1: no register.
std::pair<int, int64_t> origin(const std::map<int, const Statement*>& written, const Operand& address) {
  if (address.kind != Kind::address || address.parts[0].kind != Kind::reg) return {-1, 0};
  std::pair<int, int64_t> at{address.parts[0].reg, address.value};
  for (int steps = 0; steps < 16; ++steps) {
    const auto found = written.find(at.first);
    if (found == written.end() || !found->second) break;
    const Statement& from = *found->second;
    const bool adds = from.op == "add" && from.operands[2].kind == Kind::integer;
    if ((!adds && from.op != "mov" && from.op != "cvta") || from.operands[1].kind != Kind::reg || from.guard >= 0)
      break;
    at = {from.operands[1].reg, at.second + (adds ? from.operands[2].value : 0)};
  }
  return at;
}

}  // namespace

bool Lowering::is_compared_and_swapped(const Operand& o) {
  auto& [known, written, swapped] = state_->swaps;
  if (!known) {
    known = true;
    for (const Statement& one : state_->body.code)
      if (!one.operands.empty() && one.operands[0].kind == Kind::reg)
        if (const auto [at, first] = written.emplace(one.operands[0].reg, &one); !first) at->second = nullptr;
    for (const Statement& one : state_->body.code)
      if (one.op == "atom" && one.has("cas")) swapped.insert(origin(written, one.operands[1]));
  }
  const auto at = origin(written, o);
  return at.first >= 0 && swapped.contains(at);
}

int Lowering::register_bytes(const Operand& o) const { return bytes_of(register_type(o)); }

Type Lowering::register_type(const Operand& o) const {
  return o.kind == Kind::reg ? state_->body.registers[static_cast<size_t>(o.reg)].type : Type::none;
}

std::vector<Lowering::Kept> Lowering::kept_over() const {
  std::map<Ref, int> found;
  std::map<Ref, int> predicates;
  const auto after = static_cast<Point>(2 * state_->current + 1);
  for (size_t r = 0; r < state_->body.registers.size(); ++r) {
    if (!state_->liveness->live_at(static_cast<int>(r), after)) continue;
    const int bytes = static_cast<int>(place_bytes(state_->body.registers[r].type)) / kLanes;
    (bytes == 0 ? predicates : found)[state_->places.place[r]] = bytes;
  }
  std::vector<Kept> kept;
  for (const auto* const list : {&found, &predicates})
    for (const auto& [at, bytes] : *list) kept.push_back({at, bytes});
  return kept;
}

Ref Lowering::scratch(int bytes, int i) {
  const auto [known, is_new] = state_->scratch.try_emplace({std::max(4, bytes), i}, Ref{0});
  if (is_new) {
    known->second = kernel().register_bytes;
    kernel().register_bytes += static_cast<uint32_t>(known->first.first) * kLanes;
  }
  return known->second;
}

}  // namespace emulator::ptx
