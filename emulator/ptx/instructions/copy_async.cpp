// SPDX-License-Identifier: Apache-2.0
// cp.async. A copy takes effect when its thread waits for its group: in the fixed order not before, under a seed at
// some moment since its issue. Until then its destination holds 0xff, a NaN, so that an early read sees it.
#include "emulator/ptx/instructions/copy_async.h"

#include <memory>

#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/mbarrier.h"
#include "emulator/ptx/instructions/memory_transfer.h"

namespace emulator::ptx {

namespace {

/// The mbarriers that report the lanes' copies.
struct Claims {
  uint32_t lanes = 0;
  SharedPlace mbarriers[kLanes];
};

/// One instruction's copies, of lanes whose group has the same number.
struct Copies {
  Copies() {}          // the arrays stay as they are: only the lanes' entries are used
  uint32_t lanes = 0;  ///< that are not applied
  uint32_t group = 0;
  uint32_t line = 0;
  uint32_t site = 0;                      ///< for the checks: of the instruction
  uint32_t bytes = 0;                     ///< per lane
  bool whole = true;                      ///< every lane copies all of its bytes
  bool from_row = false, to_row = false;  ///< lane after lane
  uint64_t generation = 0;                ///< memory's generation when the sources were looked up
  char* to[kLanes];
  const char* from[kLanes];
  uint8_t given[kLanes];  ///< bytes that are copied; the others become 0
  uint64_t number = 0;    ///< instructions of the warp before this one
  std::unique_ptr<Claims> claims;  ///< for the race check; else nullptr
};

/// A warp's copies under way, oldest first.
struct Queue {
  std::vector<Copies> copies;
  size_t first = 0;                 ///< earlier ones are applied
  uint64_t issued = 0;              ///< instructions so far
  uint32_t committed[kLanes] = {};  ///< groups that a lane has committed
};

Queue* queue_of(const Warp& w) { return static_cast<Queue*>(w.async.get()); }
Queue& make_queue(Warp& w) {
  if (!w.async) w.async = std::make_shared<Queue>();
  return *queue_of(w);
}

template <uint32_t Bytes>
void copy_lanes(const Copies& c, uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    std::memcpy(c.to[lane], c.from[lane], Bytes);
  }
}

/// A source may have been freed since.
void look_again(Warp& w, const Copies& c, uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (c.given[lane])
      resolve_async(w, c.line, "cp.async", reinterpret_cast<uint64_t>(c.from[lane]), c.given[lane], false);
  }
}

/// Lane's part, as the checks have it.
BlockChecks::Copy part_of(const Copies& c, int lane) {
  return {c.to[lane], c.bytes, c.from[lane], c.given[lane], c.site};
}

/// `waited`: the threads themselves have waited; else an mbarrier may report the copies.
void apply(Warp& w, Copies& c, uint32_t lanes, bool waited) {
  c.lanes &= ~lanes;
  if (BlockChecks* const checks = race_checks_of(*w.block))
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const bool reported = !waited && c.claims && (c.claims->lanes >> lane & 1) != 0;
      checks->copy_done(w, lane, part_of(c, lane), reported ? &c.claims->mbarriers[lane] : nullptr);
    }
  if (c.generation != memory_generation()) look_again(w, c, lanes);
  if (!c.whole) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      if (c.given[lane]) std::memcpy(c.to[lane], c.from[lane], c.given[lane]);
      std::memset(c.to[lane] + c.given[lane], 0, c.bytes - c.given[lane]);
    }
  } else if (lanes == kAllLanes && c.from_row && c.to_row) {
    std::memcpy(c.to[0], c.from[0], size_t{c.bytes} * kLanes);
  } else if (c.bytes == 16) {
    copy_lanes<16>(c, lanes);
  } else if (c.bytes == 8) {
    copy_lanes<8>(c, lanes);
  } else {
    copy_lanes<4>(c, lanes);
  }
}

void tidy(Queue& q) {
  while (q.first < q.copies.size() && q.copies[q.first].lanes == 0) ++q.first;
  if (q.first == q.copies.size()) {
    q.copies.clear();
    q.first = 0;
  } else if (q.first > 64) {
    q.copies.erase(q.copies.begin(), q.copies.begin() + static_cast<std::ptrdiff_t>(q.first));
    q.first = 0;
  }
}

/// Applies the lanes' copies of groups that have `open` or more committed ones after them; of all when `everything`.
void complete(Warp& w, Queue& q, uint32_t lanes, uint32_t open, bool everything, bool waited) {
  uint32_t differs = 0;
  for (int lane = 0; lane < kLanes; ++lane) differs |= q.committed[lane] ^ q.committed[0];
  for (size_t k = q.first; k < q.copies.size(); ++k) {
    Copies& c = q.copies[k];
    uint32_t done = c.lanes & lanes;
    if (!everything && differs == 0) {
      if (int64_t{c.group} + open >= q.committed[0]) break;  // and so are all after it
    } else if (!everything) {
      for (uint32_t left = done; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (int64_t{c.group} + open >= q.committed[lane]) done &= ~(1u << lane);
      }
    }
    if (done) apply(w, c, done, waited);
  }
  tidy(q);
}

/// Under a seed, copies not yet waited for land now and then, in any order. The checks see a missing wait in any
/// case, and would not see it after such a landing.
void land_some(Warp& w, Queue& q) {
  Cluster& cluster = *w.block->cluster;
  if (checked(w)) return;
  if (!cluster.random_order() || cluster.choose(4) != 3 || q.first == q.copies.size()) return;
  Copies& c = q.copies[q.first + cluster.choose(static_cast<uint32_t>(q.copies.size() - q.first))];
  if (c.lanes) apply(w, c, c.lanes, false);
  tidy(q);
}

/// The operands of cp.async.
struct CopyForm {
  AccessForm to, from;
  Ref given = kNoRef;   ///< src-size
  Ref ignore = kNoRef;  ///< a predicate
  bool ignore_negated = false;
};

/// Where the lanes' bytes lie; the other lanes get the first one's place. False where locate() has to look.
template <Reach S, class Base>
bool find_places(Warp& w, const Instruction* i, Ref base, int64_t offset, uint32_t bytes, uint32_t lanes, char** at) {
  LaneSpan<Base, false> span;
  Window<Base> window;
  span.base = w.in<Base>(base);
  span.offset = static_cast<Base>(offset);
  const Base first = span.base[std::countr_zero(lanes)] + span.offset;
  if constexpr (S == Reach::shared) {
    span.origin = reinterpret_cast<uintptr_t>(w.block->shared);
    window = {kSharedBase, w.block->shared_end - kSharedBase};
  } else {
    const Block::Known* const known = known_range(w, i, first, false);
    if (!known) return false;
    span.origin = 0;
    window = {known->begin, known->bytes};
  }
  if (window.size < bytes) return false;
  const Base limit = static_cast<Base>(window.size - bytes), low = static_cast<Base>(bytes - 1);
  Base outside = 0, unaligned = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool runs = (lanes >> lane & 1) != 0;
    const Base there = runs ? static_cast<Base>(span.base[lane] + span.offset) : first;
    outside |= static_cast<Base>(static_cast<Base>(there - window.begin) > limit);
    unaligned |= there & low;
    at[lane] = reinterpret_cast<char*>(span.origin + there);
  }
  return outside == 0 && unaligned == 0;
}

void find_all(Warp& w, const Instruction* i, const AccessForm& form, uint32_t lanes, bool write, char** at) {
  if (lanes == 0) return;
  bool good = false;
  if (form.space == Space::shared)
    good = form.base_bytes == 4
               ? find_places<Reach::shared, uint32_t>(w, i, form.base, form.offset, form.bytes, lanes, at)
               : find_places<Reach::shared, uint64_t>(w, i, form.base, form.offset, form.bytes, lanes, at);
  else if (form.space == Space::global)
    good = find_places<Reach::global, uint64_t>(w, i, form.base, form.offset, form.bytes, lanes, at);
  if (!good) {
    locate(w, i, form, lanes, write, false, at);
    return;
  }
  if (form.space == Space::global && touched(w))
    touched(w)->note(at, lanes, form.bytes, touch_of(Order::weak, write, false));
  if (checked(w))
    note_access(w, i, {form.space, Order::weak, Scope::none, write, false, lanes, form.bytes, at});
}

bool is_row(char* const* at, uint32_t bytes) {
  uintptr_t apart = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    apart |= reinterpret_cast<uintptr_t>(at[lane]) ^
             (reinterpret_cast<uintptr_t>(at[0]) + static_cast<uintptr_t>(lane) * bytes);
  return apart == 0;
}

/// One record for lanes whose open group has the same number.
void begin_copies(Warp& w, const Instruction* i, const CopyForm& form, Queue& q, uint32_t lanes) {
  Copies& c = q.copies.emplace_back();
  c.lanes = lanes;
  c.group = q.committed[std::countr_zero(lanes)];
  c.number = q.issued++;
  c.line = i->line;
  c.bytes = form.to.bytes;
  c.generation = memory_generation();
  uint32_t reads = lanes;
  if (form.given == kNoRef && form.ignore == kNoRef) {
    std::memset(c.given, static_cast<int>(c.bytes), sizeof(c.given));
  } else {
    const uint32_t ignored = form.ignore == kNoRef ? 0 : w.predicate(form.ignore, form.ignore_negated);
    const uint32_t* const given = form.given == kNoRef ? nullptr : w.in<uint32_t>(form.given);
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const uint32_t bytes = (ignored >> lane & 1) != 0 ? 0 : given ? given[lane] : c.bytes;
      if (bytes > c.bytes)
        w.fail(i, lane, FaultCode::launch_failure,
               cat("cp.async: src-size ", bytes, " is more than cp-size ", c.bytes));
      c.given[lane] = static_cast<uint8_t>(bytes);
      if (bytes == 0) reads &= ~(1u << lane);
      c.whole = c.whole && bytes == c.bytes;
    }
  }
  char* from[kLanes] = {};
  find_all(w, i, form.to, lanes, true, c.to);
  if (c.whole) {
    find_all(w, i, form.from, reads, false, from);
  } else {
    // Bytes that are not copied are not touched: they may lie past the end. Lanes of equal src-size form a request.
    const auto same_as = [&](uint32_t among, uint32_t bytes) {
      uint32_t same = 0;
      for (uint32_t left = among; left != 0; left &= left - 1)
        same |= static_cast<uint32_t>(c.given[std::countr_zero(left)] == bytes) << std::countr_zero(left);
      return same;
    };
    const uint32_t full = same_as(reads, c.bytes);
    find_all(w, i, form.from, full, false, from);  // first: it fills in the other lanes, too
    for (uint32_t left = reads & ~full; left != 0;) {
      AccessForm part = form.from;
      part.bytes = c.given[std::countr_zero(left)];
      uint32_t same = same_as(left, part.bytes);
      locate(w, i, part, same, false, false, from);
      left &= ~same;
      for (; same != 0; same &= same - 1)
        if (const int lane = std::countr_zero(same); (reinterpret_cast<uintptr_t>(from[lane]) & (c.bytes - 1)) != 0)
          w.fail(i, lane, FaultCode::misaligned_address,
                 cat("cp.async of ", c.bytes, " bytes from an address that is no multiple of it"));
    }
  }
  std::memcpy(c.from, from, sizeof(from));
  if (BlockChecks* const checks = race_checks_of(*w.block)) {
    c.site = checks->site(i);
    for (uint32_t left = lanes; left != 0; left &= left - 1)
      checks->copy_issued(w, std::countr_zero(left), part_of(c, std::countr_zero(left)));
  }
  c.to_row = lanes == kAllLanes && is_row(c.to, c.bytes);
  c.from_row = lanes == kAllLanes && c.whole && is_row(from, c.bytes);
  if (c.to_row)
    std::memset(c.to[0], 0xff, size_t{c.bytes} * kLanes);
  else
    for (uint32_t left = lanes; left != 0; left &= left - 1) std::memset(c.to[std::countr_zero(left)], 0xff, c.bytes);
}

const Instruction* copy(Warp& w, const Instruction* i) {
  const CopyForm& form = *static_cast<const CopyForm*>(i->more);
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  Queue& q = make_queue(w);
  land_some(w, q);
  for (uint32_t left = lanes; left != 0;) {
    const uint32_t group = q.committed[std::countr_zero(left)];
    uint32_t differs = 0, same = kAllLanes;
    for (int lane = 0; lane < kLanes; ++lane) differs |= q.committed[lane] ^ group;
    if (differs != 0)
      for (int lane = 0; lane < kLanes; ++lane) same &= ~(static_cast<uint32_t>(q.committed[lane] != group) << lane);
    begin_copies(w, i, form, q, left & same);
    left &= ~same;
  }
  land_some(w, q);
  return i + 1;
}

const Instruction* commit(Warp& w, const Instruction* i) {
  Queue& q = make_queue(w);
  const uint32_t lanes = w.lanes(i);
  for (int lane = 0; lane < kLanes; ++lane) q.committed[lane] += lanes >> lane & 1;
  land_some(w, q);
  return i + 1;
}

/// imm: how many groups may stay open; all and the uncommitted one are waited for with aux set.
const Instruction* wait(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (Queue* const q = queue_of(w)) complete(w, *q, lanes, static_cast<uint32_t>(i->imm), i->aux != 0, true);
  return i + 1;
}

void lower_copy(Lowering& l) {
  CopyForm form;
  bool is_global = false, is_shared = false, is_bypassing = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "async" || mod == "ca" || mod == "L2::cache_hint" || mod == "L2::64B" || mod == "L2::128B" ||
        mod == "L2::256B")
      continue;
    if (mod == "cg")
      is_bypassing = true;
    else if (mod == "shared" || mod == "shared::cta")
      is_shared = true;
    else if (mod == "global")
      is_global = true;
    else
      l.unknown(cat("modifier .", mod));
  }
  if (!is_shared || !is_global) l.unknown("it copies from global to shared memory");
  form.to.space = Space::shared;
  form.from.space = Space::global;
  const int64_t bytes = l.operand(2).value;
  if (l.operand(2).kind != Operand::Kind::integer || (bytes != 16 && (is_bypassing || (bytes != 4 && bytes != 8))))
    l.unknown("cp-size");
  form.to.bytes = form.from.bytes = static_cast<uint8_t>(bytes);
  size_t operands = l.operands();
  if (l.has("L2::cache_hint")) --operands;
  if (operands > 4 || operands < 3) l.unknown("number of operands");
  if (operands == 4) {
    if (l.register_type(l.operand(3)) == Type::pred)
      form.ignore = l.predicate(l.operand(3), &form.ignore_negated);
    else
      form.given = l.source(l.operand(3), Type::u32);
  }
  take_address(l, l.operand(0), form.to);
  take_address(l, l.operand(1), form.from);
  if (l.operand(3).kind == Operand::Kind::integer && operands == 4 && l.operand(3).value == bytes) form.given = kNoRef;
  l.emit(copy).more = l.keep(form);
}

void lower_commit(Lowering& l) { l.emit(commit); }
void lower_wait(Lowering& l) {
  if (l.operand(0).kind != Operand::Kind::integer) l.unknown("the number of groups is a constant");
  l.emit(wait).imm = static_cast<uint64_t>(l.operand(0).value);
}
void lower_wait_all(Lowering& l) { l.emit(wait).aux = 1; }

constexpr Opcode kOpcodes[] = {
    {"cp.async", lower_copy, Roles::all_read},
    {"cp.async.ca", lower_copy, Roles::all_read},
    {"cp.async.cg", lower_copy, Roles::all_read},
    {"cp.async.commit_group", lower_commit, Roles::all_read},
    {"cp.async.wait_group", lower_wait, Roles::all_read},
    {"cp.async.wait_all", lower_wait_all, Roles::all_read},
};

}  // namespace

void land_copies_of(Warp& w, uint32_t lanes) {
  if (Queue* const q = queue_of(w)) complete(w, *q, lanes, 0, true, false);
}

uint64_t claim_copies(Warp& w, int lane, const SharedPlace& mbarrier) {
  Queue* const q = queue_of(w);
  if (!q) return 0;
  if (race_checks_of(*w.block))
    for (size_t k = q->first; k < q->copies.size(); ++k) {
      Copies& c = q->copies[k];
      if (!c.claims) c.claims = std::make_unique<Claims>();
      if ((c.claims->lanes >> lane & 1) != 0) continue;
      c.claims->lanes |= 1u << lane;
      c.claims->mbarriers[lane] = mbarrier;
    }
  return q->issued;
}

void land_copies(Warp& w, int lane, const SharedPlace& mbarrier, uint64_t count) {
  Queue* const q = queue_of(w);
  if (!q) return;
  for (size_t k = q->first; k < q->copies.size() && q->copies[k].number < count; ++k)
    if (Copies& c = q->copies[k]; (c.lanes >> lane & 1) != 0) apply(w, c, 1u << lane, false);
  tidy(*q);
  if (BlockChecks* const checks = race_checks_of(*w.block)) checks->copies_told(mbarrier);
}

void report_copies_of(Warp& w, uint32_t lanes) {
  const Queue* const q = queue_of(w);
  if (!q) return;
  lanes &= ~lanes_told_by_mbarriers(w);
  for (size_t k = q->first; k < q->copies.size(); ++k) {
    const Copies& c = q->copies[k];
    // Copies without a source, of zeros, are how loops end that prefetch.
    for (uint32_t left = c.lanes & lanes; left != 0; left &= left - 1)
      if (const int lane = std::countr_zero(left); c.given[lane] != 0) {
        w.block->checks->report_unawaited({w, lane, c.site, "cp.async"},
                                          "the thread exits and has not waited for the copy. Missing: cp.async.wait_group.");
        break;
      }
  }
}

Family copy_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
