// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <boost/context/detail/fcontext.hpp>

#include "emulator/source/stacks.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

#include <unordered_map>
#include <utility>
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

#elif defined(__SANITIZE_THREAD__)

/// What ThreadSanitizer knows of the fibers of this OS thread, each by the bottom of its stack. The thread's own has none.
struct ThreadFibers {
  struct Fiber {
    void* handle = nullptr;
    int lives = 0;  ///< code that has left this stack for good, and with it calls that never return
  };
  void* const thread = __tsan_get_current_fiber();
  void* ended = nullptr;  ///< has left for good, and can be destroyed when another one runs
  const char* running = nullptr;
  std::unordered_map<const char*, Fiber> known;

  static ThreadFibers& mine() {
    thread_local ThreadFibers fibers;
    return fibers;
  }
  /// Destroys the one that has ended.
  void clean() {
    if (void* const fiber = std::exchange(ended, nullptr)) __tsan_destroy_fiber(fiber);
  }
};

/// jump_fcontext, announced to ThreadSanitizer, which keeps the calls of each fiber.
inline transfer_t switch_fiber(const Stacks& stacks, fcontext_t to, void* data, Leaves leaves = Leaves::for_now) {
  ThreadFibers& mine = ThreadFibers::mine();
  mine.clean();
  if (leaves == Leaves::for_good && mine.running) {
    ThreadFibers::Fiber& fiber = mine.known.at(mine.running);
    if (++fiber.lives == 1000) {  // to make one costs more than a block; too many open calls are an error
      mine.ended = fiber.handle;
      mine.known.erase(mine.running);
    }
  }
  const auto address = reinterpret_cast<uintptr_t>(to);
  mine.running = stacks.contains(address) ? stacks.bottom(address) : nullptr;
  void* fiber = mine.thread;
  if (mine.running) {
    void*& known = mine.known[mine.running].handle;
    if (!known) known = __tsan_create_fiber(0);
    fiber = known;
  }
  __tsan_switch_to_fiber(fiber, 0);
  return boost::context::detail::jump_fcontext(to, data);
}
inline void entered_fiber(const Stacks&) {}
inline void entered_stack(const char*, size_t) {}

/// Fibers that are abandoned never return from their calls.
inline void forget_frames(const char* bottom, size_t bytes) {
  ThreadFibers& mine = ThreadFibers::mine();
  mine.clean();
  std::erase_if(mine.known, [&](const auto& fiber) {
    if (fiber.first < bottom || fiber.first >= bottom + bytes) return false;
    __tsan_destroy_fiber(fiber.second.handle);
    return true;
  });
}

#else

inline transfer_t switch_fiber(const Stacks&, fcontext_t to, void* data, Leaves = Leaves::for_now) {
  return boost::context::detail::jump_fcontext(to, data);
}
inline void entered_fiber(const Stacks&) {}
inline void entered_stack(const char*, size_t) {}
inline void forget_frames(const char*, size_t) {}

#endif

}  // namespace emulator::source
