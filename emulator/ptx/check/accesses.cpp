// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "emulator/ptx/lower/liveness.h"
#include "emulator/ptx/lower/register_places.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

bool has_parts(const Operand& o) { return o.kind == Kind::vector || o.kind == Kind::pair; }

/// Opcodes whose every lane depends on nothing but the same lane of its operands.
constexpr std::string_view kLanewise[] = {"abs", "add",   "addc",     "and",  "bfe",  "bfi",   "bfind", "bmsk",  "brev",
                                          "clz", "cnot",  "copysign", "cos",  "cvt",  "cvta",  "div",   "dp2a",  "dp4a",
                                          "ex2", "fma",   "lg2",      "lop3", "mad",  "mad24", "madc",  "max",   "min",
                                          "mov", "mul",   "mul24",    "neg",  "not",  "or",    "popc",  "prmt",  "rcp",
                                          "rem", "rsqrt", "sad",      "selp", "set",  "setp",  "shf",   "shl",   "shr",
                                          "sin", "slct",  "sqrt",     "sub",  "subc", "szext", "tanh",  "testp", "xor"};
static_assert(std::is_sorted(std::begin(kLanewise), std::end(kLanewise)));

}  // namespace

bool is_lanewise(const Statement& s) { return std::binary_search(std::begin(kLanewise), std::end(kLanewise), s.op); }

bool can_work_in_place(const Statement& s) {
  return is_lanewise(s) && std::none_of(s.operands.begin(), s.operands.end(), has_parts);
}

Accesses::Accesses(const Function& function, const std::vector<const Opcode*>& opcodes) {
  all_.reserve(function.code.size() * 4);
  first_.reserve(function.code.size() + 1);
  first_.push_back(0);
  for (size_t i = 0; i < function.code.size(); ++i) {
    const Statement& s = function.code[i];
    if (s.guard >= 0) all_.push_back({s.guard, true, false, true});
    const Roles roles = opcodes[i] == nullptr ? Roles::all_read : opcodes[i]->roles;
    const bool held = !can_work_in_place(s);
    const bool has_results = s.op == "call" && s.operands.size() > 1 && s.operands[0].kind == Kind::list;
    for (size_t k = 0; k < s.operands.size(); ++k) {
      const Operand& o = s.operands[k];
      const bool is_first = k == 0 && (o.kind == Kind::reg || has_parts(o));
      const bool written = (is_first && roles != Roles::all_read) || (k == 0 && has_results);
      add(o, written, !written || roles == Roles::first_updated, held);
    }
    first_.push_back(all_.size());
  }
}

void Accesses::add(const Operand& o, bool written, bool read, bool held) {
  if (o.kind == Kind::reg) all_.push_back({o.reg, read, written, held});
  for (const Operand& part : o.parts) add(part, written, read, held);
}

}  // namespace emulator::ptx
