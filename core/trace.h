// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft {

/// The name of the op that this thread runs ("tensor" outside any op): memory reports, errors and profiles use it.
const char* current_op();
/// True while this thread runs the backward of an op, or what that calls.
bool in_backward();

/// Names the running op until the scope ends. `op` must be a string literal. A profile shows the scope.
class OpScope {
 public:
  explicit OpScope(const char* op) : OpScope(op, in_backward()) {}
  OpScope(const char* op, bool backward);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const char* previous_;
  bool previous_backward_;
  int64_t started_;  // on the profile's clock; below 0: no profile is on
};

/// A part of the program that a profile and NVIDIA's tools (as an NVTX range) show: `forward`, `optimizer`, `load
/// batch`. `name` must be a string literal.
class TraceScope {
 public:
  explicit TraceScope(const char* name);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  const char* name_;
  int64_t started_;
};

}  // namespace weft
