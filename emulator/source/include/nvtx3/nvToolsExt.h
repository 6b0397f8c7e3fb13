// SPDX-License-Identifier: Apache-2.0
#pragma once
// Profiler ranges mean nothing in the emulator, but a captured launch keeps the name of its range.
namespace emulator::source {
inline thread_local const char* range_name = "";
}  // namespace emulator::source
inline int nvtxRangePushA(const char* name) {
  emulator::source::range_name = name;
  return 0;
}
inline int nvtxRangePop() {
  emulator::source::range_name = "";
  return 0;
}
