// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft {

/// A leaf that got the gradients of two backward passes and has no known owner: no fields() named the leaf, no
/// optimizer has it, and its gradient was never read, cleared or hooked. A module's member that fields() leaves out is
/// an example. The list holds each leaf until it is claimed or destroyed.
class UnclaimedLeaf {
 public:
  /// `description` of the tensor; `op` that uses the tensor.
  UnclaimedLeaf(std::string description, const char* op);
  ~UnclaimedLeaf();
  UnclaimedLeaf(const UnclaimedLeaf&) = delete;
  UnclaimedLeaf& operator=(const UnclaimedLeaf&) = delete;
};

/// Throws where this thread's backward passes left one; `who` begins the text. Optimizers ask at each step.
void check_no_unclaimed_leaf(const char* who);

}  // namespace weft
