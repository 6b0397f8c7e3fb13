// SPDX-License-Identifier: Apache-2.0
// Barriers of warps, blocks and clusters, and fences.
#include "emulator/ptx/run/barrier.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "emulator/machine/findings.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/instructions/synchronised.h"
#include "emulator/ptx/time/profile.h"

namespace emulator::ptx {

namespace {

constexpr std::array<const char*, 16> kNames = {
    "barrier 0", "barrier 1", "barrier 2",  "barrier 3",  "barrier 4",  "barrier 5",  "barrier 6",  "barrier 7",
    "barrier 8", "barrier 9", "barrier 10", "barrier 11", "barrier 12", "barrier 13", "barrier 14", "barrier 15"};

enum class Act : uint8_t { sync, arrive, red_and, red_or, red_popc };

constexpr uint64_t kBlockKey = uint64_t{0xba} << 56, kClusterKey = uint64_t{0xbc} << 56;
uint64_t key_of(size_t id, uint32_t phase) { return kBlockKey | uint64_t{id} << 32 | phase; }

struct BarrierForm {
  Act act = Act::sync;
  Ref id = kNoRef, threads = kNoRef;
  Ref value = kNoRef;  ///< the predicate of .red
  bool value_negated = false;
  bool aligned = false;  ///< all threads of a warp execute the same instruction
};

void give_result(Warp& w, const Instruction* i, uint32_t lanes, uint32_t value) {
  const BarrierForm& form = *static_cast<const BarrierForm*>(i->more);
  if (form.act == Act::red_popc) {
    if (i->d == kNoRef) return;
    for (uint32_t left = lanes; left != 0; left &= left - 1) w.out<uint32_t>(i->d)[std::countr_zero(left)] = value;
  } else if (form.act == Act::red_and || form.act == Act::red_or) {
    w.set_predicate(i->d, lanes, value ? kAllLanes : 0);
  }
}

/// All have come: sleeping lanes wake with the result of .red, and the next phase begins.
void complete(Block& block, size_t id) {
  Block::Barrier& barrier = block.barriers[id];
  const uint64_t key = key_of(id, barrier.phase);
  BlockChecks* const checks = race_checks_of(block);
  if (checks) checks->barrier_complete(id, barrier.uncounted);
  if (LaunchProfile* const profile = block.grid->profile) ++profile->barriers;
  for (Warp& w : block.warps) {
    uint32_t lanes = 0;
    for (const Group& group : w.groups)
      if (group.state == Group::State::blocked && group.wait_key == key) {
        give_result(w, group.pc - 1, group.mask, barrier.value);
        lanes |= group.mask;
      }
    if (lanes && checks && !barrier.uncounted) checks->barrier_acquire(w, lanes, id);
    if (lanes) w.wake(lanes);
  }
  const uint32_t phase = barrier.phase + 1;
  barrier = {};
  barrier.phase = phase;
  block.open_barriers &= ~(1u << id);
}

bool is_full(const Block& block, const Block::Barrier& barrier) {
  if (barrier.arrived == 0) return false;
  return barrier.all ? barrier.arrived >= block.live_threads : barrier.arrived + barrier.padding >= barrier.expected;
}

/// The barrier's number and how many threads it expects (0: all), which must be one for the lanes.
struct Request {
  size_t id;
  uint32_t expected;
};
Request read_request(Warp& w, const Instruction* i, const BarrierForm& form, uint32_t lanes) {
  const int first = std::countr_zero(lanes);
  const uint32_t id = w.in<uint32_t>(form.id)[first];
  const uint32_t expected = form.threads == kNoRef ? 0 : w.in<uint32_t>(form.threads)[first];
  if (id >= kNames.size()) w.fail(i, first, FaultCode::illegal_instruction, cat("barrier ", id, ": there are 16"));
  if (form.threads != kNoRef && (expected == 0 || expected % kLanes != 0))
    w.fail(i, first, FaultCode::illegal_instruction,
           cat(kNames[id], " expects ", expected, " threads: no multiple of 32"));
  return {id, expected};
}

/// The lanes that ask for the same as the first.
uint32_t alike(const Warp& w, const BarrierForm& form, uint32_t lanes) {
  const int first = std::countr_zero(lanes);
  const uint32_t* const id = w.in<uint32_t>(form.id);
  const uint32_t* const threads = form.threads == kNoRef ? id : w.in<uint32_t>(form.threads);
  uint32_t same = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (id[lane] == id[first] && threads[lane] == threads[first]) same |= 1u << lane;
  }
  return same;
}

/// Some of the group's lanes sleep, the others stay with this instruction.
void put_to_sleep(Warp& w, uint32_t lanes, const Instruction* next, const char* what, uint64_t key) {
  w.groups[w.current].mask = w.mask &= ~lanes;
  w.groups.push_back({next, lanes, Group::State::blocked, what, key});
}
const Instruction* go_on(Warp& w, const Instruction* next) {
  w.groups[w.current].pc = next;
  w.turn = Turn::again;
  return nullptr;
}

/// True when these lanes complete the barrier.
bool arrive(Warp& w, const Instruction* i, const BarrierForm& form, const Request& request, uint32_t lanes) {
  Block& block = *w.block;
  Block::Barrier& state = block.barriers[request.id];
  const uint32_t whole_block = (block.threads + kLanes - 1) / kLanes * kLanes;
  const uint32_t expected = request.expected ? request.expected : whole_block;
  if (state.arrived == 0) {
    block.open_barriers |= 1u << request.id;
    state.expected = expected;
    state.all = request.expected == 0;
    state.value = form.act == Act::red_and;
  } else if (expected != state.expected) {
    w.fail(i, std::countr_zero(lanes), FaultCode::launch_failure,
           cat(kNames[request.id], " expects ", expected, " threads here; those that came before expect ",
               state.expected));
  } else if (request.expected != 0) {
    state.all = false;
  }
  if (request.expected == 0)
    state.uncounted = true;
  else if (BlockChecks* const checks = race_checks_of(block))
    checks->barrier_arrive(w, lanes, request.id);
  state.arrived += static_cast<uint32_t>(std::popcount(lanes));
  // Counts are of whole warps: a warp's missing lanes count with its lowest thread.
  if ((lanes >> std::countr_one(w.exited) & 1) != 0) state.padding += static_cast<uint32_t>(std::popcount(w.exited));
  if (form.value != kNoRef) {
    const uint32_t yes = w.predicate(form.value, form.value_negated) & lanes;
    if (form.act == Act::red_popc)
      state.value += static_cast<uint32_t>(std::popcount(yes));
    else if (form.act == Act::red_and)
      state.value = state.value != 0 && yes == lanes;
    else
      state.value = state.value != 0 || yes != 0;
  }
  return is_full(block, state);
}

/// bar.sync and barrier.sync.aligned (__syncthreads): else the behaviour is undefined.
void check_alignment(Warp& w, const Instruction* i, uint32_t lanes, uint64_t key, size_t id) {
  for (const Group& group : w.groups) {
    if (group.state != Group::State::blocked || group.wait_key != key || group.pc == i + 1) continue;
    const ptx::Kernel& kernel = *w.block->grid->kernel;
    const std::string here = kernel.where(i), there = kernel.where(group.pc - 1);
    report_finding("divergent barrier",
                   cat(launch_text(*w.block->grid->launch), ": ", thread_text(w, std::countr_zero(lanes)), " is at ",
                       kNames[id], " at ", here, ", but ", thread_text(w, std::countr_zero(group.mask)),
                       " of its warp waits at the one at ", there),
                   cat(kernel.name, '\n', here, '\n', there, "\ndivergent barrier"));
    return;
  }
}

const Instruction* barrier(Warp& w, const Instruction* i) {
  const BarrierForm& form = *static_cast<const BarrierForm*>(i->more);
  const uint32_t group = w.mask;
  for (uint32_t left = w.lanes(i); left != 0;) {
    const uint32_t lanes = alike(w, form, left);
    left &= ~lanes;
    const Request request = read_request(w, i, form, lanes);
    const uint64_t key = key_of(request.id, w.block->barriers[request.id].phase);
    if (form.aligned && form.act != Act::arrive && w.groups.size() > 1) check_alignment(w, i, lanes, key, request.id);
    if (arrive(w, i, form, request, lanes)) {
      give_result(w, i, lanes, w.block->barriers[request.id].value);
      const bool counted = !w.block->barriers[request.id].uncounted;
      complete(*w.block, request.id);
      if (BlockChecks* const checks = race_checks_of(*w.block); checks && counted && form.act != Act::arrive)
        checks->barrier_acquire(w, lanes, request.id);
    } else if (form.act != Act::arrive) {
      if (lanes == w.mask) return w.block_lanes(i + 1, kNames[request.id], key);
      put_to_sleep(w, lanes, i + 1, kNames[request.id], key);
    }
  }
  return w.mask == group ? i + 1 : go_on(w, i + 1);
}

/// bar.warp.sync: being together is all.
struct WarpBarrier {
  static constexpr bool kAnywhere = true;
  void operator()(Warp& w, const Instruction*, uint32_t lanes, uint32_t) const {
    if (checked(w)) note_sync_warp(w, lanes);
  }
};
const Instruction* warp_barrier(Warp& w, const Instruction* i) {
  return synchronised(w, i, "bar.warp.sync", i->a, WarpBarrier());
}

void complete_cluster(Cluster& cluster) {
  const uint64_t key = kClusterKey | cluster.barrier_phase;
  ++cluster.barrier_phase;
  cluster.barrier_arrived = 0;
  if (BlockChecks* const checks = race_checks_of(*cluster.blocks[0])) checks->cluster_complete();
  for (const auto& block : cluster.blocks)
    for (Warp& w : block->warps) {
      uint32_t lanes = 0;
      for (const Group& group : w.groups)
        if (group.state == Group::State::blocked && group.wait_key == key) lanes |= group.mask;
      if (BlockChecks* const checks = race_checks_of(*block); checks && lanes) checks->cluster_acquire(w, lanes);
      if (lanes) w.wake(lanes);
    }
}

const Instruction* cluster_arrive(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  Cluster& cluster = *w.block->cluster;
  if (const uint32_t twice = lanes & w.cluster_arrived)
    w.fail(i, std::countr_zero(twice), FaultCode::launch_failure,
           "barrier.cluster.arrive twice without barrier.cluster.wait");
  w.cluster_arrived |= lanes;
  w.cluster_phase = (w.cluster_phase & ~lanes) | ((cluster.barrier_phase & 1) != 0 ? lanes : 0);
  if (BlockChecks* const checks = race_checks_of(*w.block))
    checks->cluster_arrive(w, lanes, static_cast<Order>(i->aux) == Order::relaxed);
  cluster.barrier_arrived += static_cast<uint32_t>(std::popcount(lanes));
  if (cluster.barrier_arrived >= cluster.live_threads) complete_cluster(cluster);
  return i + 1;
}

const Instruction* cluster_wait(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  Cluster& cluster = *w.block->cluster;
  if (const uint32_t never = lanes & ~w.cluster_arrived)
    w.fail(i, std::countr_zero(never), FaultCode::launch_failure,
           "barrier.cluster.wait without barrier.cluster.arrive");
  const uint32_t waits = lanes & ((cluster.barrier_phase & 1) != 0 ? w.cluster_phase : ~w.cluster_phase);
  w.cluster_arrived &= ~lanes;
  const uint64_t key = kClusterKey | cluster.barrier_phase;
  if (BlockChecks* const checks = race_checks_of(*w.block); checks && (lanes & ~waits) != 0)
    checks->cluster_acquire(w, lanes & ~waits);
  if (waits == 0) return i + 1;
  if (waits == w.mask) return w.block_lanes(i + 1, "barrier.cluster.wait", key);
  put_to_sleep(w, waits, i + 1, "barrier.cluster.wait", key);
  return go_on(w, i + 1);
}

/// All forms. imm: a mask of its modifiers, for checkers; c: an Order, aux: a Scope.
const Instruction* fence(Warp& w, const Instruction* i) {
  const Scope scope = static_cast<Scope>(i->aux);
  if (scope == Scope::gpu || scope == Scope::sys) std::atomic_thread_fence(std::memory_order_seq_cst);
  if (checked(w))
    note_fence(w, {static_cast<Order>(i->c), scope, w.lanes(i), static_cast<const std::string*>(i->more)->c_str()});
  return i + 1;
}

const Instruction* nap(Warp& w, const Instruction* i) { return w.lanes(i) ? w.yield(i + 1) : i + 1; }

void lower_barrier(Lowering& l) {
  BarrierForm form;
  form.aligned = l.op() == "bar" || l.has("aligned");
  bool arrives = false, reduces = false;
  Type type = Type::none;
  for (const std::string_view mod : l.mods()) {
    if (mod == "cta" || mod == "aligned" || mod == "sync") continue;
    if (mod == "arrive")
      arrives = true, form.act = Act::arrive;
    else if (mod == "red")
      reduces = true;
    else if (mod == "popc")
      form.act = Act::red_popc;
    else if (mod == "and")
      form.act = Act::red_and;
    else if (mod == "or")
      form.act = Act::red_or;
    else if (mod == "u32" || mod == "pred")
      type = type_of(mod);
    else
      l.unknown(cat("modifier .", mod));
  }
  size_t n = 0;
  Ref d = kNoRef;
  if (reduces) {
    if (form.act == Act::sync || arrives) l.unknown();
    const bool counts = form.act == Act::red_popc;
    if (type != (counts ? Type::u32 : Type::pred)) l.unknown("type of the reduction");
    d = counts ? l.destination(l.operand(n)) : l.predicate(l.operand(n));
    ++n;
  }
  const size_t rest = l.operands() - n - (reduces ? 1 : 0);
  if (rest < 1 || rest > 2 || (arrives && rest != 2)) l.unknown("number of operands");
  form.id = l.source(l.operand(n++), Type::u32);
  if (rest == 2) form.threads = l.source(l.operand(n++), Type::u32);
  if (reduces) form.value = l.predicate(l.operand(n), &form.value_negated);
  l.emit(barrier, d).more = l.keep(form);
}

void lower_warp_barrier(Lowering& l) {
  if (l.operands() != 1) l.unknown("number of operands");
  l.emit(warp_barrier, kNoRef, l.source(l.operand(0), Type::b32));
}

void lower_cluster_barrier(Lowering& l) {
  AccessForm form;
  form.order = Order::acq_rel;
  bool arrives = false, waits = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "cluster" || mod == "aligned") continue;
    if (mod == "arrive")
      arrives = true;
    else if (mod == "wait")
      waits = true;
    else if ((mod != "release" && mod != "relaxed" && mod != "acquire") || !take_modifier(mod, form))
      l.unknown(cat("modifier .", mod));
  }
  if (arrives == waits) l.unknown();
  l.emit(arrives ? cluster_arrive : cluster_wait).aux = static_cast<uint32_t>(form.order);
}

/// membar.{cta,gl,sys}, membar.proxy.*, fence{.sc,.acq_rel,.acquire,.release,.relaxed}{.scope}, fence.proxy.*,
/// fence.mbarrier_init; the tensormap's has an address and a size. Whether proxies are ordered is a checker's question.
void lower_fence(Lowering& l) {
  AccessForm form;
  form.order = l.op() == "membar" ? Order::sc : Order::acq_rel;
  static constexpr std::string_view kProxies[] = {"proxy",
                                                  "alias",
                                                  "async",
                                                  "async::global",
                                                  "async::generic",
                                                  "async.global",
                                                  "tensormap",
                                                  "tensormap::generic",
                                                  "mbarrier_init",
                                                  "async::shared::cta",
                                                  "async::shared::cluster",
                                                  "sync_restrict::shared::cta",
                                                  "sync_restrict::shared::cluster",
                                                  "generic",
                                                  "from",
                                                  "to"};
  std::string spelling(l.op());
  for (const std::string_view mod : l.mods()) {
    spelling += cat('.', mod);
    if (std::ranges::find(kProxies, mod) == std::end(kProxies) && !take_modifier(mod, form))
      l.unknown(cat("modifier .", mod));
  }
  if (form.scope == Scope::none && !l.has("proxy") && !l.has("mbarrier_init")) l.unknown("no scope");
  Instruction& i = l.emit(fence);
  i.c = static_cast<uint32_t>(form.order);
  i.aux = static_cast<uint32_t>(form.scope);
  i.more = l.keep(std::move(spelling));
}

void lower_nap(Lowering& l) { l.emit(nap); }

constexpr Opcode kOpcodes[] = {
    {"bar", lower_barrier, Roles::all_read},
    {"bar.red", lower_barrier},
    {"bar.cta.red", lower_barrier},
    {"bar.warp.sync", lower_warp_barrier, Roles::all_read},
    {"barrier", lower_barrier, Roles::all_read},
    {"barrier.red", lower_barrier},
    {"barrier.cta.red", lower_barrier},
    {"barrier.cluster", lower_cluster_barrier, Roles::all_read},
    {"membar", lower_fence, Roles::all_read},
    {"fence", lower_fence, Roles::all_read},
    {"nanosleep", lower_nap, Roles::all_read},
};

}  // namespace

void leave_cluster_barrier(Warp& w, uint32_t lanes) {
  Cluster& cluster = *w.block->cluster;
  const uint32_t in_phase = (cluster.barrier_phase & 1) != 0 ? w.cluster_phase : ~w.cluster_phase;
  cluster.barrier_arrived -= static_cast<uint32_t>(std::popcount(lanes & w.cluster_arrived & in_phase));
  w.cluster_arrived &= ~lanes;
}

void Block::threads_exited() {
  for (uint32_t left = open_barriers; left != 0; left &= left - 1) {
    const size_t id = static_cast<size_t>(std::countr_zero(left));
    if (barriers[id].all && is_full(*this, barriers[id])) complete(*this, id);
  }
  if (cluster->barrier_arrived > 0 && cluster->barrier_arrived >= cluster->live_threads) complete_cluster(*cluster);
}

Family barrier_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
