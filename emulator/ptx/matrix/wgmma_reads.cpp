// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/matrix/wgmma_reads.h"

#include <algorithm>
#include <bit>

#include "emulator/ptx/matrix/wgmma.h"

namespace emulator::ptx {

namespace {

const Instruction* look(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes != 0 && matrix::holds_sums(w, i->a))
    w.fail(i, std::countr_zero(lanes), FaultCode::launch_failure,
           cat("warp ", w.index, " reads the sums of a wgmma that it has not waited for: each warp of a warpgroup must run "
               "wgmma.wait_group"));
  return i + 1;
}

bool is_wgmma(const Statement& s) { return s.op == "wgmma"; }

}  // namespace

WgmmaReads::WgmmaReads(const Function& function, const Accesses& accesses, const RegisterPlaces& places)
    : function_(function), accesses_(accesses), places_(places) {
  int number = 0;
  for (const Statement& s : function.code) {
    if (!is_wgmma(s) || s.operands.empty() || s.mods.empty() || s.mods[0] != "mma_async") continue;
    for (const Operand& part : s.operands[0].parts)
      if (part.kind == Operand::Kind::reg) sums_.try_emplace(places.place[static_cast<size_t>(part.reg)], number);
    ++number;
  }
  if (sums_.empty()) return;
  begins_block_.resize(function.code.size() + 1);
  for (size_t i = 0; i < function.code.size(); ++i) {
    for_each_target(function, function.code[i], [&](int target) { begins_block_[static_cast<size_t>(target)] = true; });
    if (ends_block(function.code[i])) begins_block_[i + 1] = true;
  }
}

void WgmmaReads::guard(Lowering& l, size_t statement) {
  if (sums_.empty()) return;
  const Statement& s = function_.code[statement];
  if (begins_block_[statement] || is_wgmma(s)) looked_at_.clear();
  if (is_wgmma(s)) return;
  for (const Access* access = accesses_.begin(statement); access != accesses_.end(statement); ++access) {
    if (!access->read || function_.registers[static_cast<size_t>(access->reg)].type == Type::pred) continue;
    const Ref place = places_.place[static_cast<size_t>(access->reg)];
    const auto sums = sums_.find(place);
    if (sums == sums_.end() || std::ranges::find(looked_at_, sums->second) != looked_at_.end()) continue;
    l.emit(look, kNoRef, place);
    if (s.guard < 0) looked_at_.push_back(sums->second);
  }
}

}  // namespace emulator::ptx
