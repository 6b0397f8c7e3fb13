// SPDX-License-Identifier: Apache-2.0
#include "core/trace.h"

#include <utility>

#include "core/profile/recorder.h"
#include "kernels/runtime/profiler_range.h"

namespace weft {
namespace {
thread_local const char* current_name = "tensor";
thread_local bool backward_runs = false;
}  // namespace

const char* current_op() { return current_name; }
bool in_backward() { return backward_runs; }

OpScope::OpScope(const char* op, bool backward)
    : previous_(std::exchange(current_name, op)),
      previous_backward_(std::exchange(backward_runs, backward)),
      started_(profile::begin_span()) {}

OpScope::~OpScope() {
  if (started_ >= 0) profile::end_span(profile::Category::op, current_name, backward_runs, started_);
  current_name = previous_;
  backward_runs = previous_backward_;
}

TraceScope::TraceScope(const char* name) : name_(name), started_(profile::begin_span()) {
  kernels::push_profiler_range(name);
}
TraceScope::~TraceScope() {
  kernels::pop_profiler_range();
  if (started_ >= 0) profile::end_span(profile::Category::part, name_, false, started_);
}

}  // namespace weft
