// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/value_flow.h"

#include "emulator/ptx/lower/frames.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;
using Rule = ValueStep::Rule;
using Slots = std::vector<uint32_t>;

class Noter {
 public:
  Noter(const Lowering& l, const RegisterPlaces& places, uint32_t predicates_at)
      : function_(l.function()), places_(places), predicates_at_(predicates_at) {}

  void add(Slots& slots, const Operand& o) const {
    for (const Operand& part : o.parts) add(slots, part);
    if (o.kind != Kind::reg) return;
    const Ref place = places_.place[static_cast<size_t>(o.reg)];
    if (place == kNoRef) return;
    const Type type = function_.registers[static_cast<size_t>(o.reg)].type;
    if (type == Type::pred) return slots.push_back(predicates_at_ + place);
    for (uint32_t k = 0; k < place_bytes(type) / kSlotBytes; ++k) slots.push_back(place / kSlotBytes + k);
  }
  Slots of(const Operand& o) const {
    Slots slots;
    add(slots, o);
    return slots;
  }
  /// The slots of a vector of `parts` parts that are `count` slots in all; empty if they do not correspond.
  Slots spread(const Operand& o, size_t count) const {
    if (o.kind != Kind::vector) return of(o).size() == count ? of(o) : Slots();
    const size_t each = count / o.parts.size();
    Slots slots;
    for (const Operand& part : o.parts) {
      const Slots own = of(part);
      if (!own.empty() && own.size() != each) return {};
      for (size_t k = 0; k < each; ++k) slots.push_back(own.empty() ? ValueStep::kNoSlot : own[k]);
    }
    return slots.size() == count ? slots : Slots();
  }
  /// `value`: the predicate's, before a negation.
  void decide(ValueStep& step, const Operand& o, bool value) const {
    const Slots slots = of(o);
    if (slots.size() == 1 && slots[0] >= predicates_at_) step.deciders.push_back({slots[0], value != o.negated});
  }

 private:
  static constexpr uint32_t kSlotBytes = kLanes * 4;
  const Function& function_;
  const RegisterPlaces& places_;
  uint32_t predicates_at_;
};

/// mov between a register and a vector, and between equals.
void note_move(const Lowering& l, const Noter& note, ValueStep& step) {
  const Operand &to = l.operand(0), &from = l.operand(1);
  const size_t count = to.kind == Kind::vector ? note.of(from).size() : step.to.size();
  const Slots a = note.spread(to, count), b = note.spread(from, count);
  if (a.empty() || b.empty()) return;
  step.rule = Rule::move;
  step.to = a;
  step.from = b;
}

/// Where false or true settles `and` or `or`.
void note_logic(const Lowering& l, const Noter& note, ValueStep& step) {
  const bool is_and = l.op() == "and" || l.has("and"), is_or = l.op() == "or" || l.has("or");
  if (!is_and && !is_or) return;
  // setp's own operands are a comparison.
  for (size_t k = l.op() == "setp" ? 3 : 1; k < l.operands(); ++k) note.decide(step, l.operand(k), is_or);
}

void note_selection(const Lowering& l, const Noter& note, ValueStep& step) {
  Slots a = note.of(l.operand(1)), b = note.of(l.operand(2));
  a.resize(step.to.size(), ValueStep::kNoSlot);
  b.resize(step.to.size(), ValueStep::kNoSlot);
  note.decide(step, l.operand(3), true);
  if (step.deciders.empty()) return;
  step.rule = Rule::select;
  step.from = a;
  step.from.insert(step.from.end(), b.begin(), b.end());
}

}  // namespace

void note_values(Lowering& l, const RegisterPlaces& places, const Opcode& opcode, size_t first, ValueFlow& flow) {
  flow.step_at.resize(l.kernel().code.size());
  if (first >= flow.step_at.size()) return;
  flow.registers = places.bytes / (kLanes * 4);
  const Noter note(l, places, flow.registers);
  ValueStep step;
  step.op = l.op();
  const bool has_results =
      opcode.roles != Roles::all_read || (l.op() == "call" && l.operands() > 1 && l.operand(0).kind == Kind::list);
  for (size_t k = 0; k < l.operands(); ++k) note.add(k == 0 && has_results ? step.to : step.from, l.operand(k));
  if (opcode.roles == Roles::first_updated) note.add(step.from, l.operand(0));
  const std::string_view op = l.op();
  if (is_lanewise(l.statement())) {
    step.rule = Rule::combine;
    if (op == "mov") note_move(l, note, step);
    if (op == "selp") note_selection(l, note, step);
    if (op == "setp" || l.type() == Type::pred) note_logic(l, note, step);
  } else if (op == "ld" || op == "ldu" || op == "st") {
    step.rule = l.has("async") ? Rule::use : Rule::access;
    if (op == "st" && step.rule == Rule::access) step.from = note.of(l.operand(0));
  } else if (op == "shfl") {
    step.rule = Rule::shuffle;
    step.from.clear();
    for (size_t k = 2; k < l.operands(); ++k) note.add(step.from, l.operand(k));
  } else if (op == kCallFunction) {
    for (const Lowering::Kept& kept : l.kept_over())
      for (int k = 0; k < std::max(1, kept.bytes / 4); ++k)
        step.from.push_back(kept.bytes == 0 ? flow.registers + kept.at
                                            : kept.at / (kLanes * 4) + static_cast<uint32_t>(k));
  } else if (op == kReturnToCaller) {
    step.rule = Rule::back;
  }
  flow.steps.push_back(std::move(step));
  flow.step_at[first] = static_cast<uint32_t>(flow.steps.size());
}

}  // namespace emulator::ptx
