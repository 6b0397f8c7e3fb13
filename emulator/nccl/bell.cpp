// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace emulator::nccl {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

// Both sides are sequentially consistent: either the ringer sees the sleeper, or the kernel sees that the count is
// another and the sleeper does not sleep. A sleeper whose process dies leaves its count: then every ring costs a system
// call.

void Bell::ring() {
  count_.fetch_add(1);
  if (sleepers_.load() != 0) syscall(SYS_futex, &count_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(uint32_t rung, std::chrono::milliseconds limit) {
  const timespec time{static_cast<time_t>(limit.count() / 1000), static_cast<long>(limit.count() % 1000) * 1'000'000};
  sleepers_.fetch_add(1);
  syscall(SYS_futex, &count_, FUTEX_WAIT, rung, &time, nullptr, 0);
  sleepers_.fetch_sub(1);
}

}  // namespace emulator::nccl
