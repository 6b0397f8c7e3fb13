// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft {

/// A leaf that got the gradients of two backward passes and that nobody knows: no fields() named it, no optimizer has
/// it, and its gradient was never read, cleared or hooked. A module's member that fields() leaves out is one. The list
/// of them holds each until it is claimed or goes.
class UnclaimedLeaf {
 public:
  /// `description`: of the tensor; `op`: what uses it.
  UnclaimedLeaf(std::string description, const char* op);
  ~UnclaimedLeaf();
  UnclaimedLeaf(const UnclaimedLeaf&) = delete;
  UnclaimedLeaf& operator=(const UnclaimedLeaf&) = delete;
};

/// Throws where this thread's backward passes left one; `who` begins the text. Optimizers ask at each step.
void check_no_unclaimed_leaf(const char* who);

}  // namespace weft
