// SPDX-License-Identifier: Apache-2.0
#include "core/trace.h"

namespace weft {
namespace {
thread_local const char* running = "tensor";
}

const char* current_op() { return running; }

OpScope::OpScope(const char* op) : previous_(running) { running = op; }
OpScope::~OpScope() { running = previous_; }

}  // namespace weft
