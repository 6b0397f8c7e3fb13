// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/call_graph.h"

#include "emulator/ptx/lower/inline.h"

namespace emulator::ptx {

CallGraph::CallGraph(Module& module, const Function& kernel) : module_(module) {
  std::vector<const Function*> left{&kernel};
  while (!left.empty()) {
    const Function* const f = left.back();
    left.pop_back();
    if (!nodes_.contains(f)) visit(*f, left);
  }
  for (const auto& [f, node] : nodes_) {
    needs_stack_ |= node.uses_stack || node.calls_pointers;
    if (f != &kernel && (node.uses_stack || reaches(*f, *f))) called_.insert(f);
  }
  needs_stack_ |= !called_.empty();
}

void CallGraph::visit(const Function& f, std::vector<const Function*>& left) {
  if (!f.parsed) parse_body(module_.text(), const_cast<Function&>(f));
  Node node;
  bool calls_pointers = false;
  for (const Statement& s : f.code) {
    node.uses_stack |= uses_stack(s);
    if (s.op != "call") continue;
    const Operand* const callee = read_call(s).callee;
    calls_pointers |= s.target >= 0;
    Function* const target =
        callee == nullptr || callee->kind != Operand::Kind::symbol ? nullptr : module_.function(callee->name);
    if (target != nullptr && target->body.data() != nullptr && !target->is_kernel) node.callees.push_back(target);
  }
  node.calls_pointers = calls_pointers;
  if (calls_pointers)  // any of them may be what a register holds
    for (Function* const target : module_.pointed_functions()) node.callees.push_back(target);
  left.insert(left.end(), node.callees.begin(), node.callees.end());
  nodes_[&f] = std::move(node);
}

bool CallGraph::reaches(const Function& from, const Function& to) const {
  std::unordered_set<const Function*> seen;
  std::vector<const Function*> left{&from};
  while (!left.empty()) {
    const Function* const f = left.back();
    left.pop_back();
    for (const Function* const callee : nodes_.at(f).callees) {
      if (callee == &to) return true;
      if (seen.insert(callee).second) left.push_back(callee);
    }
  }
  return false;
}

}  // namespace emulator::ptx
