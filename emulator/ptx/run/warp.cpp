// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/run/warp.h"

#include <cxxabi.h>

#include <algorithm>
#include <iomanip>

#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/run/breakpoint.h"
#include "emulator/ptx/time/count.h"
#include "emulator/ptx/time/profile.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx {

namespace {

std::string triple(uint64_t x, uint64_t y, uint64_t z) { return cat('(', x, ',', y, ',', z, ')'); }

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

std::string thread_text(const Warp& w, int lane) {
  const Launch& launch = *w.block->grid->launch;
  const uint64_t thread = w.first_thread + static_cast<uint32_t>(lane);
  return cat("block ", triple(w.block->index.x, w.block->index.y, w.block->index.z), ", thread ",
             triple(thread % launch.block.x, thread / launch.block.x % launch.block.y,
                    thread / launch.block.x / launch.block.y));
}

std::string mask_text(uint32_t mask) {
  std::ostringstream out;
  out << "0x" << std::hex << std::setfill('0') << std::setw(8) << mask;
  return out.str();
}

std::string lanes_text(uint32_t lanes) {
  std::string text = std::has_single_bit(lanes) ? "lane" : "lanes";
  for (const char* before = " "; lanes != 0; before = ", ") {
    const int first = std::countr_zero(lanes), count = std::countr_one(lanes >> first);
    text += cat(before, first);
    if (count > 1) text += cat('-', first + count - 1);
    lanes &= count == kLanes ? 0 : ~(((1u << count) - 1) << first);
  }
  return text;
}

std::string launch_text(const Launch& launch) {
  return cat(demangled(launch.kernel->name), " <<<", triple(launch.grid.x, launch.grid.y, launch.grid.z), ", ",
             triple(launch.block.x, launch.block.y, launch.block.z), ", ", launch.dynamic_shared, ">>>",
             launch.stream.empty() ? "" : " on ", launch.stream);
}

const Kernel& Warp::kernel() const { return *block->grid->kernel; }

const Instruction* Warp::block_lanes(const Instruction* next, const char* what, uint64_t key) {
  Group& group = groups[current];
  group.pc = next;
  group.state = Group::State::blocked;
  group.waits_for = what;
  group.wait_key = key;
  turn = Turn::waits;
  return nullptr;
}

const Instruction* Warp::poll(const Instruction* again, const char* what) {
  Group& group = groups[current];
  turn = group.state == Group::State::polling && group.pc == again ? Turn::polls : Turn::waits;
  group.pc = again;
  group.state = Group::State::polling;
  group.waits_for = what;
  return nullptr;
}

const Instruction* Warp::yield(const Instruction* next) {
  Group& group = groups[current];
  group.pc = next;
  group.state = Group::State::polling;
  group.waits_for = nullptr;
  turn = Turn::yields;
  return nullptr;
}

const Instruction* Warp::meet(const Instruction* i, const char* what, uint32_t members) {
  Group& group = groups[current];
  group.pc = i;
  group.state = Group::State::meeting;
  group.waits_for = what;
  group.wait_key = members;
  turn = Turn::again;
  return nullptr;
}

const Instruction* Warp::branch(const Instruction* next, const Instruction* target, uint32_t taken) {
  taken &= mask;
  if (taken == mask) return target;
  if (taken == 0) return next;
  groups[current].pc = next;
  groups[current].mask = mask & ~taken;
  groups.push_back({target, taken, Group::State::ready, nullptr, 0, groups[current].depth});
  turn = Turn::again;
  return nullptr;
}

const Instruction* Warp::exit_lanes(const Instruction* next, uint32_t lanes) {
  lanes &= mask;
  const uint32_t left = mask & ~lanes, count = static_cast<uint32_t>(std::popcount(lanes));
  exited |= lanes;
  block->live_threads -= count;
  block->cluster->live_threads -= count;
  turn = Turn::again;
  if (left == 0) {
    groups.erase(groups.begin() + current);
  } else {
    groups[current].pc = next;
    groups[current].mask = mask = left;
  }
  // Groups that wait for lanes that have ended check again.
  for (Group& group : groups)
    if (group.state == Group::State::meeting) group.state = Group::State::ready;
  block->threads_exited();
  return nullptr;
}

void Warp::wake(uint32_t lanes) {
  for (size_t k = 0; k < groups.size(); ++k) {
    Group& group = groups[k];
    if (group.state != Group::State::blocked || (group.mask & lanes) == 0) continue;
    if ((group.mask & ~lanes) == 0) {
      group.state = Group::State::ready;
      continue;
    }
    Group woken = group;
    woken.mask &= lanes;
    woken.state = Group::State::ready;
    group.mask &= ~lanes;
    groups.push_back(woken);
  }
}

void Warp::pass(uint32_t lanes) {
  for (size_t k = 0; k < groups.size() && lanes != 0; ++k) {
    Group& group = groups[k];
    if (group.state != Group::State::meeting || (group.mask & lanes) == 0) continue;
    Group passed = group;
    passed.mask &= lanes;
    ++passed.pc;
    passed.state = Group::State::ready;
    lanes &= ~passed.mask;
    group.mask &= ~passed.mask;
    if (group.mask == 0)
      group = passed;
    else
      groups.push_back(passed);
  }
}

void Warp::fail(const Instruction* i, int lane, FaultCode code, const std::string& what) const {
  fail_later(i ? i->line : 0, lane, code, what);
}

void Warp::fail_later(uint32_t line, int lane, FaultCode code, const std::string& what) const {
  Instruction at{};
  at.line = line;
  throw Fault(code, cat(launch_text(*block->grid->launch), ": ", thread_text(*this, lane < 0 ? std::countr_zero(mask | 1u << 31) : lane),
                        line ? cat(" at ", kernel().where(&at)) : "", ": ", what));
}

namespace {

bool runs_before(const Group& a, const Group& b) { return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc; }

/// Calls of a recursion meet in the one that they came from; an instruction that gathers lanes takes them from all.
bool may_meet(const Group& a, const Group& b) {
  return a.depth == b.depth || (a.state == Group::State::meeting && b.state == Group::State::meeting);
}

}  // namespace

bool Warp::pick() {
  if (groups.size() > 1) merge();
  size_t best = groups.size();
  for (size_t k = 0; k < groups.size(); ++k) {
    if (groups[k].state != Group::State::ready) continue;
    if (best == groups.size() || runs_before(groups[k], groups[best])) best = k;
  }
  // Groups that only polled come after all others, in order.
  for (size_t n = 0; best == groups.size() && n < groups.size(); ++n) {
    const size_t k = (current + 1 + n) % groups.size();
    if (groups[k].state == Group::State::polling) best = k;
  }
  if (best == groups.size()) return false;
  current = static_cast<uint32_t>(best);
  mask = groups[best].mask;
  return true;
}

/// Groups at the same instruction become one. A growing group that gathers lanes is ready again.
void Warp::merge() {
  for (size_t a = 0; a + 1 < groups.size(); ++a)
    for (size_t b = a + 1; b < groups.size();) {
      if (groups[a].pc != groups[b].pc || groups[a].state == Group::State::blocked ||
          groups[b].state == Group::State::blocked || !may_meet(groups[a], groups[b])) {
        ++b;
        continue;
      }
      groups[a].mask |= groups[b].mask;
      groups[a].depth = std::max(groups[a].depth, groups[b].depth);
      groups[a].state = Group::State::ready;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
    }
}

namespace {

/// Runs a group's turn and counts it. `alone`: there is no other group that its lanes may meet.
const Instruction* run_counted(Warp& w, const Instruction* i, bool alone, bool one_step) {
  Count& count = *w.block->cluster->count;
  LaunchProfile* const profile = w.block->grid->profile;
  timing::ClusterTime* const time = w.block->cluster->time;
  do {
    if (w.undefined) w.block->checks->follow(w, i);
    ++count.warp_instructions;
    count.lane_instructions += static_cast<uint64_t>(std::popcount(w.lanes(i)));
    i = profile ? profile->step(w, i) : time ? time->step(w, i) : i->run(w, i);
    if (i) w.groups[w.current].state = Group::State::ready;
  } while (i && !one_step && (alone || !(i->flags & kLeader)));
  return i;
}

/// Runs a group's turn, whose undefined values are followed. `alone`: as above.
const Instruction* run_followed(Warp& w, const Instruction* i, bool alone, bool one_step) {
  const auto step = [&w](const Instruction* at) {
    if (w.undefined) [[unlikely]]
      w.block->checks->follow(w, at);
    return at->run(w, at);
  };
  i = step(i);
  if (i && alone) w.groups[w.current].state = Group::State::ready;
  while (i && !one_step && (alone || !(i->flags & kLeader))) i = step(i);
  return i;
}

}  // namespace

Turn Warp::run(int32_t turns_fuel) {
  fuel = turns_fuel;
  bool worked = false;
  const bool watched = kernel().debug != nullptr;  // one instruction at a time
  turn = Turn::none;
  while (pick()) {
    const Instruction* i = groups[current].pc;
    turn = Turn::again;
    if (watched) [[unlikely]]
      look_at(*this, i);
    if (block->cluster->count) [[unlikely]] {
      i = run_counted(*this, i, groups.size() == 1, watched);
    } else if (kernel().flow) [[unlikely]] {
      i = run_followed(*this, i, groups.size() == 1, watched);
    } else if (groups.size() == 1 && !watched) {
      i = i->run(*this, i);
      if (i) groups[current].state = Group::State::ready;  // polling here again is then no standstill
      while (i) i = i->run(*this, i);
    } else {
      do i = i->run(*this, i);
      while (i && !(i->flags & kLeader) && !watched);
    }
    if (i) {
      groups[current].pc = i;
      groups[current].state = Group::State::ready;
      if (worked = true; !watched && --fuel < 0) break;
      continue;
    }
    worked = worked || turn != Turn::polls;
    if (turn == Turn::again) continue;
    if (std::ranges::none_of(groups, [](const Group& g) { return g.state == Group::State::ready; })) break;
  }
  if (turn == Turn::none) return turn;
  if (turn == Turn::polls && worked) return Turn::waits;
  return turn == Turn::again ? Turn::waits : turn;
}

}  // namespace emulator::ptx
