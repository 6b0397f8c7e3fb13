// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstddef>

namespace emulator::source {

/// Bytes of a page: what memory is protected by, and so what guards are made of. 4 KiB on x86-64; aarch64 kernels have
/// pages of 4, 16 or 64 KiB (those of GH200 nodes often 64).
inline size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// -fstack-clash-protection lets no function pass more of its stack than this without touching it: a guard below a
/// stack must be as large. GCC's default by architecture.
#if defined(__aarch64__)
inline constexpr size_t kProbedBytes = 64 << 10;
#else
inline constexpr size_t kProbedBytes = 4 << 10;
#endif

}  // namespace emulator::source
