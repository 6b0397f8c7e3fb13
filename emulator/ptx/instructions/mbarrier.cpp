// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/mbarrier.h"

#include <algorithm>

#include "emulator/machine/fresh.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/copy_async.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx {

namespace {

constexpr uint64_t kCount = (uint64_t{1} << 20) - 1;
constexpr int kPendingBit = 1, kExpectedBit = 21, kBytesBit = 41, kMarkBit = 62;
constexpr uint64_t kBytesMask = (uint64_t{1} << 21) - 1;

constexpr uint32_t kWord = 8;

struct Operands {
  Addresses address;
  Where where = Where::generic;
  Ref state = kNoRef;  ///< read or written, lanes of 8 bytes
  Ref count = kNoRef, bytes = kNoRef;
  Ref done = kNoRef;  ///< a predicate
  bool no_complete = false, drop = false, by_parity = false, expects = false, relaxed = false;
};
const Operands& operands_of(const Instruction* i) { return *static_cast<const Operands*>(i->more); }

void store(const SharedPlace& place, const Mbarrier& barrier) {
  const uint64_t word = barrier.word();
  std::memcpy(place.data(), &word, sizeof(word));
}

/// Ends the phase when nothing is missing, and stores the object.
void settle(const SharedPlace& place, Mbarrier barrier) {
  if (barrier.pending == 0 && barrier.bytes == 0) {
    barrier.odd = !barrier.odd;
    barrier.pending = barrier.expected;
    place.block->cluster->phase_ended = true;
    if (timing::ClusterTime* const time = place.block->cluster->time) time->mbarrier_phase_ended(place, !barrier.odd);
    if (BlockChecks* const checks = race_checks_of(*place.block)) checks->mbarrier_phase(place.at);
  }
  store(place, barrier);
}

void change_bytes(Warp& w, uint32_t line, int lane, Mbarrier& barrier, int64_t change, const char* what) {
  const int64_t bytes = barrier.bytes + change;
  if (bytes > Mbarrier::kMostBytes || bytes < -Mbarrier::kMostBytes)
    w.fail_later(line, lane, FaultCode::launch_failure,
                 cat(what, ": the tx-count of the mbarrier becomes ", bytes, ", its range is -(2^20 - 1) to 2^20 - 1"));
  barrier.bytes = static_cast<int32_t>(bytes);
}

SharedPlace place_of(Warp& w, const Instruction* i, int lane, const Operands& o, const char* what) {
  return shared_place(w, i, lane, o.where, o.address.at(w, lane), kWord, kWord, what);
}

/// The address of an mbarrier that the lane uses at the same time as others.
SharedPlace used_place(Warp& w, const Instruction* i, int lane, const Operands& o, const char* what) {
  const SharedPlace place = place_of(w, i, lane, o, what);
  if (BlockChecks* const checks = race_checks_of(*w.block)) checks->mbarrier_use(w, i, lane, place.data());
  return place;
}

const Instruction* init(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedPlace place = place_of(w, i, lane, o, "mbarrier.init");
    const uint32_t count = w.in<uint32_t>(o.count)[lane];
    if (count == 0 || count > Mbarrier::kMostArrivals)
      w.fail(i, lane, FaultCode::launch_failure,
             cat("mbarrier.init: ", count, " arrivals, the range is 1 to 2^20 - 1"));
    if (BlockChecks* const checks = race_checks_of(*w.block)) checks->mbarrier_init(w, i, lane, place.data());
    mark_written(place.data(), kWord);
    store(place, {count, count, 0, false});
  }
  return i + 1;
}

const Instruction* inval(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    // A use, too: an arrival after it fails by itself.
    const SharedPlace place = used_place(w, i, lane, o, "mbarrier.inval");
    mbarrier_at(w, i->line, lane, place, "mbarrier.inval");
    std::memset(place.data(), 0xff, kWord);
  }
  return i + 1;
}

const Instruction* arrive(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  const char* const what = o.drop ? "mbarrier.arrive_drop" : "mbarrier.arrive";
  const uint32_t lanes = w.lanes(i);
  uint64_t states[kLanes];  // the state's register may be that of the address
  w.changed = true;
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedPlace place = used_place(w, i, lane, o, what);
    Mbarrier barrier = mbarrier_at(w, i->line, lane, place, what);
    if (BlockChecks* const checks = race_checks_of(*w.block)) checks->mbarrier_arrive(w, lane, place, o.relaxed);
    states[lane] = barrier.word();
    if (o.expects) change_bytes(w, i->line, lane, barrier, w.in<uint32_t>(o.bytes)[lane], what);
    const uint32_t count = o.count == kNoRef ? 1 : w.in<uint32_t>(o.count)[lane];
    if (count == 0 || count > barrier.pending)
      w.fail(i, lane, FaultCode::launch_failure,
             cat(what, ": ", count, " arrivals are more than the mbarrier waits for: ", barrier.text()));
    barrier.pending -= count;
    if (o.drop) barrier.expected -= std::min(count, barrier.expected);
    if (o.no_complete && barrier.pending == 0)
      w.fail(i, lane, FaultCode::launch_failure, cat(what, ".noComplete completes the phase"));
    if (timing::ClusterTime* const time = w.block->cluster->time) time->mbarrier_arrived(w, place);
    settle(place, barrier);
  }
  if (o.state != kNoRef)
    for (uint32_t left = lanes; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      w.out<uint64_t>(o.state)[lane] = states[lane];
    }
  return i + 1;
}

template <bool kExpect>
const Instruction* tx(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  const char* const what = kExpect ? "mbarrier.expect_tx" : "mbarrier.complete_tx";
  w.changed = true;
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const SharedPlace place = used_place(w, i, lane, o, what);
    const uint32_t bytes = w.in<uint32_t>(o.bytes)[lane];
    if (!kExpect) {
      mbarrier_complete(w, i->line, lane, place, bytes, what);
      continue;
    }
    Mbarrier barrier = mbarrier_at(w, i->line, lane, place, what);
    change_bytes(w, i->line, lane, barrier, bytes, what);
    settle(place, barrier);
  }
  return i + 1;
}

/// Whether the phase is over that a lane asks about.
bool is_over(Warp& w, const Instruction* i, int lane, const Operands& o, const char* what) {
  const SharedPlace place = place_of(w, i, lane, o, what);
  if (place.block != w.block)
    w.fail(i, lane, FaultCode::launch_failure, cat(what, ": the mbarrier is another block's"));
  const Mbarrier barrier = mbarrier_at(w, i->line, lane, place, what);
  bool odd;  // the phase that is asked about
  if (o.by_parity) {
    // A compiler may sign-extend the bit (Triton does): GPUs look at the lowest bit alone.
    const uint32_t given = w.in<uint32_t>(o.state)[lane], parity = given == ~0u ? 1 : given;
    if (parity > 1) w.fail(i, lane, FaultCode::launch_failure, cat(what, ": parity ", parity, ", expected 0 or 1"));
    odd = parity != 0;
  } else {
    const auto then = Mbarrier::decode(w.in<uint64_t>(o.state)[lane]);
    if (!then) w.fail(i, lane, FaultCode::launch_failure, cat(what, ": its state comes from no mbarrier.arrive"));
    odd = then->odd;
  }
  if (barrier.odd == odd) return false;
  if (BlockChecks* const checks = race_checks_of(*w.block)) {
    checks->mbarrier_use(w, i, lane, place.data());
    checks->mbarrier_acquire(w, lane, place.at);
  }
  if (timing::ClusterTime* const time = w.block->cluster->time) time->mbarrier_waited(w, place, odd);
  return true;
}

template <class T>
bool are_same(const T* lanes) {
  T differ = 0;
  for (int lane = 0; lane < kLanes; ++lane) differ |= lanes[lane] ^ lanes[0];
  return differ == 0;
}
bool ask_the_same(const Warp& w, const Operands& o) {
  const Addresses& a = o.address;
  return (a.wide ? are_same(w.in<uint64_t>(a.base)) : are_same(w.in<uint32_t>(a.base))) &&
         (o.by_parity ? are_same(w.in<uint32_t>(o.state)) : are_same(w.in<uint64_t>(o.state)));
}

template <bool kTry>
const Instruction* wait(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  constexpr const char* kWhat = kTry ? "mbarrier.try_wait" : "mbarrier.test_wait";
  const uint32_t lanes = w.lanes(i);
  // Mostly all lanes ask the same.
  const bool same = lanes == kAllLanes && race_checks_of(*w.block) == nullptr && ask_the_same(w, o);
  uint32_t done = 0;
  if (same) {
    if (is_over(w, i, 0, o, kWhat)) done = lanes;
  } else {
    for (uint32_t left = lanes; left; left &= left - 1)
      if (const int lane = std::countr_zero(left); is_over(w, i, lane, o, kWhat)) done |= 1u << lane;
  }
  // Lanes whose phase is over must not wait for the others, which may depend on them.
  if (lanes == 0 || done != 0 || !kTry) {
    w.set_predicate(o.done, lanes, done);
    if (done == lanes) return i + 1;
    w.spins = true;
    return w.yield(i + 1);
  }
  return w.poll(i, kWhat);
}

const Instruction* pending_count(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  uint32_t counts[kLanes];
  const uint32_t lanes = w.lanes(i);
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto then = Mbarrier::decode(w.in<uint64_t>(o.state)[lane]);
    if (!then)
      w.fail(i, lane, FaultCode::launch_failure, "mbarrier.pending_count: its state comes from no mbarrier.arrive");
    counts[lane] = then->pending;
  }
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    w.out<uint32_t>(i->d)[lane] = counts[lane];
  }
  return i + 1;
}

/// An arrival that comes when the cp.async of a lane have landed.
struct CopiesArrive : Pending {
  Warp* warp = nullptr;
  int lane = 0;
  uint32_t line = 0;
  SharedPlace place;
  uint64_t copies = 0;

  void apply() override {
    constexpr const char* kWhat = "cp.async.mbarrier.arrive";
    land_copies(*warp, lane, place, copies);
    Mbarrier barrier = mbarrier_at(*warp, line, lane, place, kWhat);
    if (barrier.pending == 0)
      warp->fail_later(line, lane, FaultCode::launch_failure,
                       cat(kWhat, ": more arrivals than the mbarrier waits for: ", barrier.text()));
    --barrier.pending;
    settle(place, barrier);
  }
};

template <bool kCounted>
const Instruction* copies_arrive(Warp& w, const Instruction* i) {
  const Operands& o = operands_of(i);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    auto arrival = std::make_shared<CopiesArrive>();
    arrival->warp = &w;
    arrival->lane = lane;
    arrival->line = i->line;
    arrival->place = used_place(w, i, lane, o, "cp.async.mbarrier.arrive");
    arrival->copies = claim_copies(w, lane, arrival->place);
    Mbarrier barrier = mbarrier_at(w, i->line, lane, arrival->place, "cp.async.mbarrier.arrive");
    if (kCounted) {  // without .noinc the arrival is in addition to the count of mbarrier.init
      if (barrier.pending == Mbarrier::kMostArrivals)
        w.fail(i, lane, FaultCode::launch_failure, "cp.async.mbarrier.arrive: the mbarrier's pending count overflows");
      ++barrier.pending;
      store(arrival->place, barrier);
    }
    w.block->pending.push_back(std::move(arrival));
  }
  return i + 1;
}

// Read by lowering. Qualifiers of ordering (.release, .acquire, .relaxed, scopes) change no result here: the threads
// of a cluster run one at a time, in order. The checks know of them.

void allow(Lowering& l, std::initializer_list<std::string_view> more) {
  constexpr std::string_view kAll[] = {"shared",  "shared::cta", "shared::cluster", "b64", "release", "acquire",
                                       "relaxed", "cta",         "cluster"};
  for (const std::string_view mod : l.mods())
    if (std::ranges::find(kAll, mod) == std::end(kAll) && std::ranges::find(more, mod) == more.end())
      l.unknown(cat('.', mod));
}

Operands read_place(Lowering& l, size_t at) {
  Operands o;
  o.address = read_addresses(l, l.operand(at));
  o.where = read_where(l);
  o.relaxed = l.has("relaxed");
  return o;
}

void lower_init(Lowering& l) {
  allow(l, {"init"});
  Operands o = read_place(l, 0);
  o.count = l.source(l.operand(1), Type::u32);
  l.emit(init).more = l.keep(o);
}

void lower_inval(Lowering& l) {
  allow(l, {"inval"});
  l.emit(inval).more = l.keep(read_place(l, 0));
}

void lower_arrive(Lowering& l) {
  allow(l, {"arrive", "arrive_drop", "expect_tx", "noComplete"});
  // The state may be left out of the forms for other blocks' mbarriers, or be `_`.
  const bool bare = l.operand(0).kind == Operand::Kind::address;
  const size_t at = bare ? 0 : 1;
  Operands o = read_place(l, at);
  if (!bare) o.state = l.destination(l.operand(0));
  o.expects = l.has("expect_tx");
  o.no_complete = l.has("noComplete");
  o.drop = l.has("arrive_drop");
  if (l.operands() > at + 1) (o.expects ? o.bytes : o.count) = l.source(l.operand(at + 1), Type::u32);
  if (o.expects && o.bytes == kNoRef) l.unknown();
  l.emit(arrive).more = l.keep(o);
}

void lower_tx(Lowering& l) {
  allow(l, {"expect_tx", "complete_tx"});
  Operands o = read_place(l, 0);
  o.bytes = l.source(l.operand(1), Type::u32);
  l.emit(l.has("expect_tx") ? tx<true> : tx<false>).more = l.keep(o);
}

void lower_wait(Lowering& l) {
  allow(l, {"test_wait", "try_wait", "parity"});
  Operands o = read_place(l, 1);
  o.by_parity = l.has("parity");
  o.done = l.predicate(l.operand(0));
  o.state = l.source(l.operand(2), o.by_parity ? Type::u32 : Type::b64);
  // try_wait may name a time limit: here it waits until there is nothing else to do.
  l.emit(l.has("try_wait") ? wait<true> : wait<false>).more = l.keep(o);
}

void lower_pending_count(Lowering& l) {
  allow(l, {"pending_count"});
  Operands o;
  o.state = l.source(l.operand(1), Type::b64);
  l.emit(pending_count, l.destination(l.operand(0))).more = l.keep(o);
}

void lower_copies_arrive(Lowering& l) {
  allow(l, {"async", "mbarrier", "arrive", "noinc"});
  l.emit(l.has("noinc") ? copies_arrive<false> : copies_arrive<true>).more = l.keep(read_place(l, 0));
}

}  // namespace

std::optional<Mbarrier> Mbarrier::decode(uint64_t word) {
  if (word >> kMarkBit != 1) return std::nullopt;
  Mbarrier barrier;
  barrier.odd = word & 1;
  barrier.pending = static_cast<uint32_t>(word >> kPendingBit & kCount);
  barrier.expected = static_cast<uint32_t>(word >> kExpectedBit & kCount);
  const uint32_t bytes = static_cast<uint32_t>(word >> kBytesBit & kBytesMask);
  barrier.bytes = static_cast<int32_t>(bytes << 11) >> 11;
  return barrier;
}

uint64_t Mbarrier::word() const {
  return uint64_t{odd} | uint64_t{pending} << kPendingBit | uint64_t{expected} << kExpectedBit |
         (static_cast<uint64_t>(static_cast<uint32_t>(bytes)) & kBytesMask) << kBytesBit | uint64_t{1} << kMarkBit;
}

std::string Mbarrier::text() const {
  return cat(pending, " of ", expected, " arrivals and ", bytes, " bytes are missing in its phase of parity ", odd);
}

Mbarrier mbarrier_at(Warp& w, uint32_t line, int lane, const SharedPlace& place, const char* what) {
  uint64_t word;
  std::memcpy(&word, place.data(), sizeof(word));
  const auto barrier = Mbarrier::decode(word);
  if (!barrier)
    w.fail_later(line, lane, FaultCode::launch_failure,
                 cat(what, ": there is no mbarrier at shared address ", place.at, " of block ", place.block->rank,
                     " of the cluster: mbarrier.init has not run, or its 8 bytes were written over"));
  return *barrier;
}

std::string missing_text(Warp& w, const Group& group) {
  if (group.pc->run != wait<true>) return {};
  const int lane = std::countr_zero(group.mask);
  const SharedPlace place = place_of(w, group.pc, lane, operands_of(group.pc), "mbarrier.try_wait");
  return ": " + mbarrier_at(w, group.pc->line, lane, place, "mbarrier.try_wait").text();
}

uint32_t lanes_told_by_mbarriers(const Warp& w) {
  uint32_t lanes = 0;
  for (const auto& pending : w.block->pending)
    if (const auto* const arrival = dynamic_cast<const CopiesArrive*>(pending.get()); arrival && arrival->warp == &w)
      lanes |= 1u << arrival->lane;
  return lanes;
}

void mbarrier_complete(Warp& w, uint32_t line, int lane, const SharedPlace& place, uint64_t bytes, const char* what) {
  Mbarrier barrier = mbarrier_at(w, line, lane, place, what);
  change_bytes(w, line, lane, barrier, -static_cast<int64_t>(bytes), what);
  settle(place, barrier);
}

Family mbarrier_family() {
  static constexpr Opcode kOpcodes[] = {
      {"mbarrier.init", lower_init, Roles::all_read},
      {"mbarrier.inval", lower_inval, Roles::all_read},
      {"mbarrier.arrive", lower_arrive},
      {"mbarrier.arrive_drop", lower_arrive},
      {"mbarrier.expect_tx", lower_tx, Roles::all_read},
      {"mbarrier.complete_tx", lower_tx, Roles::all_read},
      {"mbarrier.test_wait", lower_wait},
      {"mbarrier.try_wait", lower_wait},
      {"mbarrier.pending_count", lower_pending_count},
      {"cp.async.mbarrier.arrive", lower_copies_arrive, Roles::all_read},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
