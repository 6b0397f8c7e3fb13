// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft {

/// The name of the op that this thread runs ("tensor" outside any op): memory reports and errors use it.
const char* current_op();

/// Names the running op until the scope ends. `op` must be a string literal.
class OpScope {
 public:
  explicit OpScope(const char* op);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const char* previous_;
};

}  // namespace weft
