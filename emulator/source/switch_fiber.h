// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <boost/context/detail/fcontext.hpp>

#include "emulator/source/stacks.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator::source {

using boost::context::detail::fcontext_t;
using boost::context::detail::transfer_t;

/// Whether the fiber that jumps away is ever resumed.
enum class Leaves : bool { for_now, for_good };

#if defined(__SANITIZE_ADDRESS__)

/// The stack of this OS thread, as AddressSanitizer told it when the first fiber was entered.
struct ThreadStack {
  const void* bottom = nullptr;
  size_t bytes = 0;
};
inline thread_local ThreadStack thread_stack;

/// jump_fcontext, announced to AddressSanitizer, which keeps the bounds of the stack that runs.
inline transfer_t switch_fiber(const Stacks& stacks, fcontext_t to, void* data, Leaves leaves = Leaves::for_now) {
  const auto address = reinterpret_cast<uintptr_t>(to);
  const bool fiber = stacks.contains(address);
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(leaves == Leaves::for_good ? nullptr : &fake_stack,
                                 fiber ? stacks.bottom(address) : thread_stack.bottom,
                                 fiber ? Stacks::kBytes : thread_stack.bytes);
  const transfer_t from = boost::context::detail::jump_fcontext(to, data);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  return from;
}

/// The first thing that a new fiber does.
inline void entered_fiber(const Stacks& stacks) {
  ThreadStack before;
  __sanitizer_finish_switch_fiber(nullptr, &before.bottom, &before.bytes);
  if (!stacks.contains(reinterpret_cast<uintptr_t>(before.bottom))) thread_stack = before;
}

/// Code that the signal handler has sent to another stack.
inline void entered_stack(const char* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(nullptr, bottom, bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

/// Fibers that are abandoned leave red zones of frames that never return.
inline void forget_frames(const char* bottom, size_t bytes) { __asan_unpoison_memory_region(bottom, bytes); }

#else

inline transfer_t switch_fiber(const Stacks&, fcontext_t to, void* data, Leaves = Leaves::for_now) {
  return boost::context::detail::jump_fcontext(to, data);
}
inline void entered_fiber(const Stacks&) {}
inline void entered_stack(const char*, size_t) {}
inline void forget_frames(const char*, size_t) {}

#endif

}  // namespace emulator::source
