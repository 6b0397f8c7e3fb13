// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "emulator/ptx/instructions/lanes.h"

// Instructions that wait until all lanes of their member mask execute them (.sync).

namespace emulator::ptx {

/// Whether these lanes are all members that have not exited: CUDA lets a mask name lanes that have, or never were.
inline bool are_all(const Warp& w, uint32_t lanes, uint32_t members) { return (members & ~w.exited & ~lanes) == 0; }

/// Lanes of other groups that wait at another instruction of this kind, for the same members.
inline uint32_t waiting_elsewhere(const Warp& w, const Instruction* i, Ref Instruction::* mask, uint32_t members) {
  uint32_t found = 0;
  for (const Group& group : w.groups) {
    if (group.state != Group::State::meeting || group.pc == i || group.pc->run != i->run) continue;
    for (uint32_t left = group.mask; left != 0; left &= left - 1)
      if (const int lane = std::countr_zero(left); w.in<uint32_t>(group.pc->*mask)[lane] == members) found |= 1u << lane;
  }
  return found;
}

/// When not all lanes of the group name the same members, or these are not together.
template <class Act>
[[gnu::noinline]] const Instruction* synchronised_in_parts(Warp& w, const Instruction* i, const char* what,
                                                           const uint32_t* masks, uint32_t lanes, const Act& act) {
  const uint32_t group = w.mask;
  uint32_t done = group & ~lanes, wanted = 0;  // lanes that do not execute it go on
  struct Part {
    uint32_t lanes, members;
  } parts[kLanes];
  int count = 0;
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t members = masks[std::countr_zero(left)];
    uint32_t same = 0;
    for (uint32_t rest = left; rest != 0; rest &= rest - 1)
      if (const int lane = std::countr_zero(rest); masks[lane] == members) same |= 1u << lane;
    left &= ~same;
    if (const uint32_t others = same & ~members)
      w.fail(i, std::countr_zero(others), FaultCode::launch_failure,
             cat(what, ": the thread is not in its own member mask ", mask_text(members)));
    uint32_t elsewhere = 0;
    if constexpr (requires { Act::kAnywhere; }) elsewhere = waiting_elsewhere(w, i, &Instruction::a, members);
    if (!are_all(w, same | elsewhere, members)) {
      wanted |= members;
      continue;
    }
    w.pass(elsewhere);
    parts[count++] = {same | elsewhere, members};
    done |= same;
  }
  for (int k = 0; k < count; ++k) act(w, i, parts[k].lanes, parts[k].members);
  if (done == group) return i + 1;
  if (done == 0) return w.meet(i, what, wanted);
  return w.branch(i, i + 1, done);
}

/// Calls act(w, i, lanes, members) for the lanes that name the same members, once these are together. The lanes of a
/// group may name different ones, as halves of a warp do that know only themselves. Where Act::kAnywhere is declared,
/// lanes may wait for each other at different instructions, whose mask is i->a.
template <class Act>
[[gnu::always_inline]] inline const Instruction* synchronised(Warp& w, const Instruction* i, const char* what, Ref mask,
                                                              const Act& act) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  const uint32_t* const masks = w.in<uint32_t>(mask);
  const uint32_t first = masks[std::countr_zero(lanes)];
  uint32_t differs = 0;
  if ((mask & kConstant) == 0)
    for (uint32_t left = lanes; left != 0; left &= left - 1) differs |= masks[std::countr_zero(left)] ^ first;
  if (differs == 0 && are_all(w, lanes, first) && (lanes & ~first) == 0) [[likely]] {
    act(w, i, lanes, first);
    return i + 1;
  }
  return synchronised_in_parts(w, i, what, masks, lanes, act);
}

}  // namespace emulator::ptx
