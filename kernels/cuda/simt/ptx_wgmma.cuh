// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/hopper.h"

// kernels/cuda/ptx_wgmma.cuh on the emulator: see there for what each function does.

namespace weft::kernels::simt::ptx {

inline uint64_t wgmma_descriptor(const void* tile, Swizzle swizzle, uint32_t leading, uint32_t stride, WEFT_SIMT_HERE) {
  return emulator::source::wgmma_descriptor(tile, static_cast<int>(swizzle), leading, stride, where);
}
inline void wgmma_fence(WEFT_SIMT_HERE) { emulator::source::wgmma_fence(where); }
inline void wgmma_commit(WEFT_SIMT_HERE) { emulator::source::wgmma_commit(where); }
template <int kPending>
void wgmma_wait(WEFT_SIMT_HERE) {
  emulator::source::wgmma_wait(kPending, where);
}

template <class T>
inline constexpr emulator::source::WgmmaType kWgmmaType = std::is_same_v<T, bf16>  ? emulator::source::WgmmaType::bf16
                                                          : std::is_same_v<T, f16> ? emulator::source::WgmmaType::f16
                                                                                   : emulator::source::WgmmaType::tf32;

template <class T, int N, Along along_a = Along::depth, Along along_b = Along::depth>
void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b, bool accumulate = true, WEFT_SIMT_HERE) {
  constexpr bool kTf32 = std::is_same_v<T, float>;
  static_assert(kTf32 || std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  static_assert(N == 8 || N == 32 || N == 64 || N == 96 || N == 128 || N == 192 || N == 256);
  static_assert(!kTf32 || ((N == 64 || N == 128 || N == 256) && along_a == Along::depth && along_b == Along::depth));
  emulator::source::wgmma(
      {N, kWgmmaType<T>, along_a == Along::rows, along_b == Along::rows, accumulate, a, b, nullptr, d}, where);
}
template <class T, int N, Along along_b = Along::depth>
void wgmma(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, bool accumulate = true, WEFT_SIMT_HERE) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  static_assert(N == 32 || N == 64 || N == 96 || N == 128 || N == 192 || N == 256);
  emulator::source::wgmma({N, kWgmmaType<T>, false, along_b == Along::rows, accumulate, 0, b, a, d}, where);
}

}  // namespace weft::kernels::simt::ptx
