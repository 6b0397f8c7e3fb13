// SPDX-License-Identifier: Apache-2.0
#pragma once
// Profiler ranges mean nothing in the emulator, but a captured launch keeps the name of the range that it stands in.
namespace weft::emulator {
inline thread_local const char* range_name = "";
}  // namespace weft::emulator
inline int nvtxRangePushA(const char* name) {
  weft::emulator::range_name = name;
  return 0;
}
inline int nvtxRangePop() {
  weft::emulator::range_name = "";
  return 0;
}
