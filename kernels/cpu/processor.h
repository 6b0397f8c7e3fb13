// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <string_view>

#include "kernels/error.h"

namespace weft::kernels::cpu {

/// The loops that a processor runs: those of AVX2 (or of another architecture), of AVX-512, of AVX-512 with products of bf16.
enum class Level { avx2, avx512, avx512_bf16 };

/// The processor's level, or WEFT_CPU if that is lower. Errors: WEFT_CPU names no level.
inline Level level() {
  static const Level chosen = [] {
    Level best = Level::avx2;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      best = __builtin_cpu_supports("avx512bf16") ? Level::avx512_bf16 : Level::avx512;
#endif
    const char* const text = std::getenv("WEFT_CPU");
    const std::string_view wanted = text ? text : "";
    if (wanted.empty()) return best;
    constexpr std::string_view names[] = {"avx2", "avx512", "avx512_bf16"};
    for (int i = 0; i < 3; ++i)
      if (wanted == names[i]) return static_cast<Level>(i) < best ? static_cast<Level>(i) : best;
    fail("WEFT_CPU: expected avx2, avx512 or avx512_bf16, got '", wanted, "'");
  }();
  return chosen;
}

/// Whether loops_avx512.cpp (x86-64-v4) may be called.
inline bool has_avx512() { return level() >= Level::avx512; }

}  // namespace weft::kernels::cpu
