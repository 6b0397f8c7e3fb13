// SPDX-License-Identifier: Apache-2.0
// --check uninitialised: values from memory that was never written may be loaded, copied and computed with. They must
// not decide an address, a branch or what other memory receives.
#include <algorithm>

#include "emulator/machine/fresh.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/lower/value_flow.h"

namespace emulator::ptx {

namespace {

using Rule = ValueStep::Rule;
constexpr uint32_t kSlotBytes = kLanes * 4;

/// Calls f(slot, byte of the element, bytes) for each slot that holds bytes of element e.
template <class F>
void for_each_slot(const AccessForm& form, int e, const F& f) {
  const Ref r = form.registers[e];
  if (r == kNoRef || (r & kConstant) != 0) return;
  for (uint32_t byte = 0; byte < form.bytes; byte += 4)
    f(r / kSlotBytes + byte / 4, byte, std::min<uint32_t>(4, form.bytes - byte));
}

}  // namespace

UndefinedValues& BlockChecks::values_of(const Warp& w) {
  if (values_.empty()) values_.resize(block_.warps.size());
  return values_[w.index];
}

void BlockChecks::load_undefined(Warp& w, const Instruction* i, const AccessNote& note) {
  UndefinedValues& values = values_of(w);
  for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (!any_fresh(note.at(lane), note.bytes)) continue;
    for (int e = 0; e < note.loaded->count; ++e)
      for_each_slot(*note.loaded, e, [&](uint32_t slot, uint32_t byte, uint32_t bytes) {
        const char* const at = note.at(lane) + e * note.loaded->bytes + byte;
        if (any_fresh(at, bytes)) values.set(slot, 1u << lane, ~0u, read_of(w, i, lane, note, at));
      });
  }
  w.undefined = values.any();
}

/// The number of the first read by this instruction, or of the read whose value was stored at `at`.
uint32_t BlockChecks::read_of(const Warp& w, const Instruction* i, int lane, const AccessNote& note, const char* at) {
  if (const auto stored = undefined_stores_.find(at); stored != undefined_stores_.end()) return stored->second;
  const auto known = std::ranges::find(undefined_reads_, site(i), &UndefinedRead::at);
  const auto number = static_cast<uint32_t>(known - undefined_reads_.begin());
  if (known == undefined_reads_.end())
    undefined_reads_.push_back({site(i), w.index, lane, note.at(lane), note.bytes, note.space});
  return number;
}

void BlockChecks::store_undefined(Warp& w, const Instruction* i, const AccessNote& note) {
  UndefinedValues& values = values_of(w);
  for (int e = 0; e < note.stored->count; ++e)
    for_each_slot(*note.stored, e, [&](uint32_t slot, uint32_t byte, uint32_t bytes) {
      if (note.space == Space::global) return use(w, i, slot, note.lanes, "is stored to global memory");
      for (uint32_t left = values.lanes(slot) & note.lanes; left != 0; left &= left - 1) {
        const char* const at = note.at(std::countr_zero(left)) + e * note.stored->bytes + byte;
        mark_fresh(at, bytes);
        undefined_stores_[at] = values.read(slot);
      }
    });
  w.undefined = values.any();
}

/// Reports a use of a value in any of these lanes, once.
void BlockChecks::use(Warp& w, const Instruction* i, uint32_t slot, uint32_t lanes, std::string_view how) {
  UndefinedValues& values = values_of(w);
  if ((values.lanes(slot) & lanes) == 0) return;
  const UndefinedRead& read = undefined_reads_[values.read(slot)];
  report_fresh(block_.warps[read.warp], read.lane, read.at, read.memory, read.bytes, read.space,
               cat(". The value ", how, " at ", where(site(i))));
  values.set(slot, lanes, 0, 0);
}

void BlockChecks::exchanged(Warp& w, Ref to, Ref from, uint32_t lanes, const uint32_t* source) {
  if (to == kNoRef) return;
  UndefinedValues& values = values_of(w);
  const uint32_t slot = from / kSlotBytes, held = (from & kConstant) != 0 ? 0 : values.lanes(slot);
  uint32_t undefined = 0;
  for (int lane = 0; lane < kLanes; ++lane) undefined |= (held >> source[lane] & 1u) << lane;
  values.set(to / kSlotBytes, lanes, undefined, held != 0 ? values.read(slot) : 0);
  w.undefined = values.any();
}

void BlockChecks::follow(Warp& w, const Instruction* i) {
  const ValueFlow& flow = *block_.grid->kernel->flow;
  const uint32_t number = flow.step_at[site(i)];
  if (number == 0) return;
  const ValueStep& step = flow.steps[number - 1];
  UndefinedValues& values = values_of(w);
  uint32_t lanes = w.lanes(i), unknown = 0, unknown_by = 0;  // where the guard is undefined, and its slot
  if (i->guard != 0) {
    unknown_by = flow.registers + (i->guard >> 1) - 1;
    unknown = values.lanes(unknown_by) & w.mask;
    if (unknown != 0 && step.rule > Rule::select) {
      use(w, i, unknown_by, w.mask, step.op == "bra" ? "decides a branch" : cat("is the condition of `", step.op, '`'));
      unknown = 0;
    }
    lanes |= unknown;
  }
  const auto result = [&](uint32_t slot, uint32_t undefined, uint32_t read) {
    values.set(slot, lanes, undefined | unknown, undefined & lanes ? read : unknown ? values.read(unknown_by) : 0);
  };
  const auto lanes_of = [&](uint32_t slot) { return slot == ValueStep::kNoSlot ? 0 : values.lanes(slot); };
  const auto is_so = [&](const ValueStep::Decider& d) { return w.predicate(d.slot - flow.registers, !d.value); };
  switch (step.rule) {
    case Rule::combine: {
      uint32_t undefined = 0, read = 0;
      for (const uint32_t slot : step.from)
        if (const uint32_t more = lanes_of(slot) & lanes; more != 0) {
          undefined |= more;
          read = values.read(slot);
        }
      for (const ValueStep::Decider& d : step.deciders) undefined &= ~(is_so(d) & ~values.lanes(d.slot));
      for (const uint32_t slot : step.to) result(slot, undefined, read);
      break;
    }
    case Rule::move: {
      // A vector may have its own source among its parts.
      std::vector<std::pair<uint32_t, uint32_t>> found;
      for (const uint32_t slot : step.from) found.emplace_back(lanes_of(slot), lanes_of(slot) ? values.read(slot) : 0);
      for (size_t k = 0; k < step.to.size(); ++k)
        if (step.to[k] != ValueStep::kNoSlot) result(step.to[k], found[k].first, found[k].second);
      break;
    }
    case Rule::select: {
      const ValueStep::Decider& d = step.deciders[0];
      const uint32_t first = is_so(d), open = values.lanes(d.slot);
      for (size_t k = 0; k < step.to.size(); ++k) {
        const uint32_t a = step.from[k], b = step.from[step.to.size() + k];
        const uint32_t of_a = lanes_of(a) & first, of_b = lanes_of(b) & ~first;
        const uint32_t by = of_a & lanes ? a : of_b & lanes ? b : d.slot, undefined = of_a | of_b | open;
        result(step.to[k], undefined, undefined & lanes ? values.read(by) : 0);
      }
      break;
    }
    case Rule::back:
      values.set_all_defined(lanes);
      break;
    case Rule::access:
    case Rule::shuffle:
    case Rule::use:
      for (const uint32_t slot : step.from)
        use(w, i, slot, lanes, step.rule == Rule::access ? "is an address" : cat("is an operand of `", step.op, '`'));
      if (step.rule == Rule::shuffle) break;
      for (const uint32_t slot : step.to) values.set(slot, lanes, 0, 0);
      break;
  }
  w.undefined = values.any();
}

}  // namespace emulator::ptx
