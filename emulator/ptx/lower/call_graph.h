// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulator/ptx/run/kernel.h"

namespace emulator::ptx {

/// The calls by name that a kernel reaches: finds calls that cannot be inlined.
class CallGraph {
 public:
  /// `kernel` has its parsed body; the bodies of called functions are parsed here.
  CallGraph(Module& module, const Function& kernel);
  /// Whether the kernel or a called function calls without inlining or needs stack memory.
  bool needs_stack() const { return needs_stack_; }
  /// Calls of `f` are not inlined: it calls itself, over others perhaps, or takes memory of the stack, which its return
  /// frees.
  bool is_called(Function& f) const { return called_.contains(&f); }

  static bool uses_stack(const Statement& s) {
    return s.op == "alloca" || s.op == "stacksave" || s.op == "stackrestore";
  }

 private:
  struct Node {
    std::vector<const Function*> callees;
    bool uses_stack = false, calls_pointers = false;
  };
  void visit(const Function& f, std::vector<const Function*>& left);  ///< `left`: to be visited later
  bool reaches(const Function& from, const Function& to) const;

  Module& module_;
  std::unordered_map<const Function*, Node> nodes_;
  std::unordered_set<const Function*> called_;
  bool needs_stack_ = false;
};

}  // namespace emulator::ptx
