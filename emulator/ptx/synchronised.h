// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/lanes.h"

// Instructions that wait until all lanes of their member mask execute them (.sync).

namespace emulator::ptx {

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
             cat(what, ": the thread is not in its own member mask ", members));
    if (!w.together(members)) {
      wanted |= members;
      continue;
    }
    parts[count++] = {same, members};
    done |= same;
  }
  for (int k = 0; k < count; ++k) act(w, i, parts[k].lanes, parts[k].members);
  if (done == group) return i + 1;
  if (done == 0) return w.meet(i, what, wanted);
  return w.branch(i, i + 1, done);
}

/// Calls act(w, i, lanes, members) for the lanes that name the same members, once these are together. The lanes of a
/// group may name different ones, as halves of a warp do that know only themselves.
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
  if (differs == 0 && w.together(first) && (lanes & ~first) == 0) [[likely]] {
    act(w, i, lanes, first);
    return i + 1;
  }
  return synchronised_in_parts(w, i, what, masks, lanes, act);
}

}  // namespace emulator::ptx
