// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/ladder/counts.h"

#include <dlfcn.h>

#include "kernels/error.h"

namespace weft::benchmarks {
namespace {

using Counter = decltype(&weft_emulator_count);
Counter counter() { return reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, "weft_emulator_count")); }

}  // namespace

bool can_count() { return counter() != nullptr; }

weft_emulator_counts count(const std::function<void()>& work) {
  WEFT_CHECK(can_count(), "ladder: a real GPU does not count, an emulated one does");
  struct Counting {
    weft_emulator_counts counts{};
    Counting() { counter()(&counts); }
    ~Counting() { counter()(nullptr); }
  } counting;
  work();
  counter()(nullptr);  // waits for the kernels
  return counting.counts;
}

}  // namespace weft::benchmarks
