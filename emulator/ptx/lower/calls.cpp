// SPDX-License-Identifier: Apache-2.0
// Calls that are not inlined (frames.h): return addresses, and the registers that the caller keeps.
#include "emulator/ptx/lower/calls.h"

#include <algorithm>

#include "emulator/ptx/instructions/lanes.h"
#include "emulator/ptx/lower/frames.h"
#include "emulator/ptx/lower/lowering.h"

namespace emulator::ptx {

struct CallForm {
  std::vector<Lowering::Kept> kept;
  size_t kept_bytes = 0;
  size_t section = 0;                        ///< 0: in the register
  std::vector<const Function*> with_layout;  ///< possible callees of a call through a register
};

/// Each lane's stack of return addresses and kept registers.
struct CallStacks {
  struct Frame {
    const Instruction* back;
    const CallForm* form;
    size_t kept_at;
  };
  struct Lane {
    std::vector<Frame> frames;
    std::vector<char> kept;
    uint64_t top = 0;  ///< top of the caller's frame, for the callee's
    uint64_t bytes() const { return kept.size() + frames.size() * sizeof(uint64_t); }
  };
  Lane lanes[kLanes];
};

namespace {

CallStacks& stacks_of(Warp& w) {
  if (w.calls == nullptr) {
    w.calls = std::make_shared<CallStacks>();
    for (CallStacks::Lane& lane : w.calls->lanes) lane.top = w.kernel().local_bytes;
  }
  return *w.calls;
}

void check_stack(Warp& w, const Instruction* i, int l, const CallStacks::Lane& lane, uint64_t top) {
  const uint64_t limit = w.block->grid->launch->stack_bytes;
  if (top <= w.local_bytes && top - w.kernel().local_bytes + lane.bytes() <= limit) return;
  w.fail(
      i, l, FaultCode::hardware_stack_error,
      cat("the stack of ", limit, " bytes a thread (cudaLimitStackSize) is full, ", lane.frames.size(), " calls deep"));
}

/// imm: bytes of the frame; aux: its alignment; b: bytes of arguments and results.
const Instruction* enter(Warp& w, const Instruction* i) {
  CallStacks& stacks = stacks_of(w);
  const Ref* const registers = static_cast<const Ref*>(i->more);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const CallStacks::Lane& lane = stacks.lanes[l];
    const uint64_t frame = (lane.top + i->b + i->aux - 1) / i->aux * i->aux, top = frame + i->imm;
    check_stack(w, i, l, lane, top);
    std::memset(w.local + static_cast<uint64_t>(l) * w.local_bytes + frame, 0xff, i->imm);
    const uint64_t values[] = {lane.top, frame, top};
    for (int n = 0; n < 3; ++n)
      if (registers[n] != kNoRef) w.out<uint64_t>(registers[n])[l] = values[n];
  }
  return i + 1;
}

const Instruction* grow(Warp& w, const Instruction* i) {
  CallStacks& stacks = stacks_of(w);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const uint64_t top = w.in<uint64_t>(i->a)[l], wanted = w.in<uint64_t>(i->b)[l];
    const uint64_t bytes = wanted > UINT32_MAX ? wanted : (wanted + kFrameAlign - 1) / kFrameAlign * kFrameAlign;
    check_stack(w, i, l, stacks.lanes[l], bytes > UINT32_MAX ? UINT64_MAX : top + bytes);
    std::memset(w.local + static_cast<uint64_t>(l) * w.local_bytes + top, 0xff, bytes);
    w.out<uint64_t>(i->d)[l] = top + bytes;
  }
  return i + 1;
}

template <class F>
void for_each_kept(Warp& w, const CallForm& form, int lane, F f) {
  for (const Lowering::Kept& kept : form.kept)
    if (kept.bytes != 0) f(w.out<char>(kept.at) + lane * kept.bytes, static_cast<size_t>(kept.bytes));
}

void push(Warp& w, const CallForm& form, int l, CallStacks::Lane& lane, const Instruction* back, uint64_t top) {
  lane.frames.push_back({back, &form, lane.kept.size()});
  lane.kept.resize(lane.kept.size() + form.kept_bytes);
  char* at = lane.kept.data() + lane.frames.back().kept_at;
  for_each_kept(w, form, l, [&](const char* from, size_t bytes) {
    std::memcpy(at, from, bytes);
    at += bytes;
  });
  for (const Lowering::Kept& kept : form.kept)
    if (kept.bytes == 0) *at++ = static_cast<char>(w.predicates[kept.at] >> l & 1);
  lane.top = top;
}

void pop(Warp& w, int l, CallStacks::Lane& lane) {
  const CallStacks::Frame frame = lane.frames.back();
  const char* at = lane.kept.data() + frame.kept_at;
  for_each_kept(w, *frame.form, l, [&](char* to, size_t bytes) {
    std::memcpy(to, at, bytes);
    at += bytes;
  });
  for (const Lowering::Kept& kept : frame.form->kept)
    if (kept.bytes == 0) w.set_predicate(kept.at, 1u << l, *at++ ? 1u << l : 0);
  lane.kept.resize(frame.kept_at);
  lane.frames.pop_back();
}

/// The given lanes go to `target`, `depth` calls deep; the others of the group to `others`.
const Instruction* go(Warp& w, const Instruction* others, const Instruction* target, uint32_t lanes, size_t depth) {
  Group& own = w.groups[w.current];
  if (lanes == w.mask) {
    own.depth = static_cast<uint32_t>(depth);
    return target;
  }
  const Instruction* const next = w.branch(others, target, lanes);
  w.groups.back().depth = static_cast<uint32_t>(depth);
  return next;
}

/// The section that a lane's register names.
const CalledFunction& callee_of(Warp& w, const Instruction* i, int lane, const CallForm& form) {
  const std::vector<CalledFunction>& functions = w.kernel().functions;
  if (form.section != 0) return functions[form.section];
  const uint64_t address = w.in<uint64_t>(i->a)[lane];
  const auto found = std::ranges::find(functions, address, &CalledFunction::address);
  if (found != functions.end() && std::ranges::find(form.with_layout, found->function) != form.with_layout.end())
    return *found;
  if (const Function* const f = w.kernel().module->function_at(address))
    w.fail(i, lane, FaultCode::illegal_instruction,
           cat("call of ", demangled(std::string(f->name)), ", whose parameters are not those of the call"));
  const bool is_other = (address & kWindowMask) == kCodeWindow;
  w.fail(i, lane, FaultCode::illegal_instruction,
         cat("call of ", is_other ? "a function of another module" : describe_address(address),
             is_other ? "" : ": no function"));
}

/// Lanes of one callee go first; the others come back here.
const Instruction* call(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  const CallForm& form = *static_cast<const CallForm*>(i->more);
  const int first = std::countr_zero(lanes);
  const CalledFunction& callee = callee_of(w, i, first, form);
  CallStacks& stacks = stacks_of(w);
  uint32_t same = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    if (form.section == 0 && w.in<uint64_t>(i->a)[l] != callee.address) continue;
    same |= 1u << l;
    push(w, form, l, stacks.lanes[l], i + 1, w.in<uint64_t>(i->b)[l]);
  }
  const Instruction* const target = w.kernel().code.data() + callee.code;
  return go(w, same == lanes ? i + 1 : i, target, same, stacks.lanes[first].frames.size());
}

/// Lanes that came from one call go first; the others come back here.
const Instruction* return_to_caller(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  CallStacks& stacks = stacks_of(w);
  const int first = std::countr_zero(lanes);
  const Instruction* const back = stacks.lanes[first].frames.back().back;
  const size_t depth = stacks.lanes[first].frames.size();
  uint32_t same = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    CallStacks::Lane& lane = stacks.lanes[l];
    if (lane.frames.back().back != back || lane.frames.size() != depth) continue;
    same |= 1u << l;
    pop(w, l, lane);
  }
  return go(w, same == lanes ? i + 1 : i, back, same, depth - 1);
}

Ref place_of(Lowering& l, const Operand& o) { return l.source(o, Type::b64); }

void lower_enter(Lowering& l) {
  Kernel& kernel = l.kernel();
  kernel.has_stack = true;
  const Function::Section& section = l.function().sections[kernel.functions.size()];
  kernel.functions.push_back({section.function, kernel.code.size(), l.module().function_address(*section.function)});
  std::array<Ref, 3> registers{};
  for (size_t n = 0; n < registers.size(); ++n) registers[n] = l.destination(l.operand(0).parts[n]);
  Instruction& i = l.emit(enter, kNoRef, kNoRef, static_cast<Ref>(l.operand(3).value));
  i.imm = static_cast<uint64_t>(l.operand(1).value);
  i.aux = static_cast<uint32_t>(l.operand(2).value);
  i.more = l.keep(registers)->data();
}

void lower_call(Lowering& l) {
  CallForm form;
  form.kept = l.kept_over();
  for (const Lowering::Kept& kept : form.kept) form.kept_bytes += static_cast<size_t>(std::max(1, kept.bytes));
  Ref callee = kNoRef;
  if (l.operand(0).kind == Operand::Kind::integer) {
    form.section = static_cast<size_t>(l.operand(0).value);
  } else {
    callee = place_of(l, l.operand(0));
    const Prototype& prototype = l.function().prototypes[static_cast<size_t>(l.operand(2).value)];
    const FrameLayout layout(prototype.results, prototype.parameters);
    for (const Function::Section& section : l.function().sections)
      if (!section.function->is_kernel &&
          FrameLayout(section.function->results, section.function->parameters) == layout)
        form.with_layout.push_back(section.function);
  }
  const Ref top = place_of(l, l.operand(1));
  l.emit(call, kNoRef, callee, top).more = l.keep(std::move(form));
}

void lower_return(Lowering& l) { l.emit(return_to_caller); }
void lower_grow(Lowering& l) {
  const Ref top = place_of(l, l.operand(1)), bytes = l.source(l.operand(2), Type::u64);
  l.emit(grow, l.destination(l.operand(0)), top, bytes);
}
void lower_end(Lowering& l) { l.emit(run_off_code); }

constexpr Opcode kOpcodes[] = {
    {kEnterFrame, lower_enter},
    {kCallFunction, lower_call, Roles::all_read},
    {kReturnToCaller, lower_return, Roles::all_read},
    {kGrowStack, lower_grow},
    {kEndOfCode, lower_end, Roles::all_read},
};

}  // namespace

const Instruction* run_off_code(Warp& w, const Instruction* i) {
  w.fail(i, std::countr_zero(w.mask), FaultCode::illegal_instruction, "the kernel's code ends without ret or exit");
}

Family call_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
