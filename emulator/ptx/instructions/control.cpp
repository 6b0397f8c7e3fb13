// SPDX-License-Identifier: Apache-2.0
// Jumps, ends, and instructions without effect here.
#include "emulator/ptx/instructions/control.h"

#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/copy_async.h"
#include "emulator/ptx/matrix/wgmma.h"
#include "emulator/ptx/run/barrier.h"
#include "emulator/ptx/run/register_pool.h"

namespace emulator::ptx {

namespace {

const Instruction* target_of(const Instruction* i) {
  return reinterpret_cast<const Instruction*>(reinterpret_cast<const char*>(i) + static_cast<int64_t>(i->imm));
}

/// Backward jumps in a turn, far fewer for polling loops: then other warps run.
const Instruction* jump(Warp& w, const Instruction* i, const Instruction* target) {
  constexpr int32_t kLooks = 256;
  if (target <= i && (w.fuel -= w.spins && !w.changed ? kLooks : 1) < 0) [[unlikely]]
    return w.yield(target);
  return target;
}

const Instruction* branch(Warp& w, const Instruction* i) {
  const uint32_t taken = w.lanes(i);
  if (taken == 0) return i + 1;
  const Instruction* const target = target_of(i);
  if (taken == w.mask) return jump(w, i, target);
  if (target <= i) --w.fuel;
  return w.branch(i + 1, target, taken);
}

/// A table of `imm` jumps follows. Lanes of one entry go first; the others come back here.
const Instruction* branch_by_index(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  const uint64_t entries = i->imm;
  if (lanes == 0) return i + 1 + entries;
  const uint32_t* const index = w.in<uint32_t>(i->a);
  const int first = std::countr_zero(lanes);
  if (index[first] >= entries)
    w.fail(i, first, FaultCode::illegal_instruction,
           cat("brx.idx ", index[first], " of a table of ", entries, " targets"));
  uint32_t same = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    if (const int lane = std::countr_zero(left); index[lane] == index[first]) same |= 1u << lane;
  const Instruction* const entry = i + 1 + index[first];
  const Instruction* const target = target_of(entry);
  if (same == w.mask) return jump(w, entry, target);
  return w.branch(same == lanes ? i + 1 + entries : i, target, same);
}

const Instruction* leave(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  const bool races = race_checks_of(*w.block) != nullptr;
  if (races) report_copies_of(w, lanes);
  land_copies_of(w, lanes);
  leave_cluster_barrier(w, lanes);
  w.exit_lanes(i + 1, lanes);
  if (races && w.exited == kAllLanes) matrix::report_unawaited(w);
  if (!w.block->done()) return nullptr;
  check_register_requests(*w.block);
  if (races)
    for (const auto& block : w.block->cluster->blocks)
      for (const auto& pending : block->pending) pending->block_ends(*w.block);
  return nullptr;
}

const Instruction* trap(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  w.fail(i, std::countr_zero(lanes), FaultCode::launch_failure, i->aux ? "brkpt, without a debugger" : "trap");
}

void lower_branch(Lowering& l) {
  for (const std::string_view mod : l.mods())
    if (mod != "uni") l.unknown(cat("modifier .", mod));
  Instruction& i = l.emit(branch);
  i.imm = static_cast<uint64_t>(l.statement().target);
  i.flags |= kJump;
}

void lower_branch_by_index(Lowering& l) {
  const std::vector<int>& table = l.function().tables.at(static_cast<size_t>(l.statement().target));
  l.emit(branch_by_index, kNoRef, l.source(l.operand(0), Type::u32)).imm = table.size();
  for (const int statement : table) {
    Instruction& i = l.emit(branch);
    i.guard = 0;
    i.imm = static_cast<uint64_t>(statement);
    i.flags |= kJump;
  }
}

void lower_exit(Lowering& l) { l.emit(leave); }
void lower_return(Lowering& l) {
  if (!l.function().is_kernel) l.unknown("ret of a function that is called");
  l.emit(leave);
}
void lower_trap(Lowering& l) { l.emit(trap).aux = l.op() == "brkpt"; }

void lower_nothing(Lowering&) {}

/// The previous kernel has ended in truth. If the check of streams assumes otherwise, the threads wait until no other
/// thread of their cluster can go on (grid.cpp).
const Instruction* wait_for_grids(Warp& w, const Instruction* i) {
  Cluster& cluster = *w.block->cluster;
  Grid& grid = *w.block->grid;
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0 || cluster.touched != grid.early || !grid.early) return i + 1;
  if (lanes != w.mask) return w.branch(i + 1, i, lanes);
  cluster.waits = grid.waited = true;
  return w.poll(i, "griddepcontrol.wait");
}
void lower_griddepcontrol(Lowering& l) {
  if (l.mods().size() != 1) l.unknown("this griddepcontrol");
  if (l.mods()[0] == "wait")
    l.emit(wait_for_grids);
  else if (l.mods()[0] != "launch_dependents")
    l.unknown("this griddepcontrol");
}

void lower_call(Lowering& l) {
  if (!lower_builtin_call(l)) l.unknown("a call of this function");
}

constexpr Opcode kOpcodes[] = {
    {"bra", lower_branch, Roles::all_read},      {"brx.idx", lower_branch_by_index, Roles::all_read},
    {"call", lower_call, Roles::all_read},       {"ret", lower_return, Roles::all_read},
    {"exit", lower_exit, Roles::all_read},       {"trap", lower_trap, Roles::all_read},
    {"brkpt", lower_trap, Roles::all_read},      {"nop", lower_nothing, Roles::all_read},
    {"pragma", lower_nothing, Roles::all_read},  {".pragma", lower_nothing, Roles::all_read},
    {"pmevent", lower_nothing, Roles::all_read}, {"griddepcontrol", lower_griddepcontrol, Roles::all_read},
};

}  // namespace

Family control_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
