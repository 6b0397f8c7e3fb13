// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/ptx.h"

// kernels/cuda/ptx.cuh on the emulator: see there for what each function does.

namespace weft::kernels::simt::ptx {

inline int lane_id() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

// Inlined, so that reports name the caller's line; through a vector of the host, so that the compiler does not take the
// 16 bytes apart and the checked build sees one access.
using Host16 = unsigned __attribute__((vector_size(16), may_alias));

__forceinline__ uint4 ld16(const void* address, WEFT_SIMT_HERE) {
  emulator::source::check_aligned(address, 16, where);
  return __builtin_bit_cast(uint4, *static_cast<const Host16*>(address));
}
__forceinline__ uint4 ld16_nc(const void* address, WEFT_SIMT_HERE) { return ld16(address, where); }
__forceinline__ void st16(void* address, uint4 value, WEFT_SIMT_HERE) {
  emulator::source::check_aligned(address, 16, where);
  *static_cast<Host16*>(address) = __builtin_bit_cast(Host16, value);
}

template <int kBytes>
void cp_async(void* shared, const void* global, WEFT_SIMT_HERE) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  emulator::source::copy_async(shared, global, kBytes, kBytes, where);
}
template <int kBytes>
void cp_async_zfill(void* shared, const void* global, int source_bytes, WEFT_SIMT_HERE) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  emulator::source::copy_async(shared, global, kBytes, source_bytes, where);
}
inline void cp_async_commit(WEFT_SIMT_HERE) { emulator::source::copy_async_commit(where); }
template <int kPending>
void cp_async_wait_group() {
  emulator::source::copy_async_wait_group(kPending);
}
inline void cp_async_wait_all() { emulator::source::copy_async_wait_all(); }

inline void ldmatrix_x1(uint32_t (&r)[1], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX1, 1, r, row, where);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX2, 2, r, row, where);
}
inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX4, 4, r, row, where);
}
inline void ldmatrix_x1_trans(uint32_t (&r)[1], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX1Trans, 1, r, row, where);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX2Trans, 2, r, row, where);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row, WEFT_SIMT_HERE) {
  emulator::source::ldmatrix(emulator::source::kLdmatrixX4Trans, 4, r, row, where);
}

template <class T>
void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], WEFT_SIMT_HERE) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  emulator::source::mma(std::is_same_v<T, bf16> ? emulator::source::kMmaK16Bf16 : emulator::source::kMmaK16F16, d, a, b,
                        where);
}
template <class T>
void mma_m16n8k8(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1], WEFT_SIMT_HERE) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  emulator::source::mma(std::is_same_v<T, bf16> ? emulator::source::kMmaK8Bf16 : emulator::source::kMmaK8F16, d, a, b,
                        where);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], WEFT_SIMT_HERE) {
  emulator::source::mma(emulator::source::kMmaK8Tf32, d, a, b, where);
}

inline uint32_t to_tf32(float value) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits & 0xffffe000u;
  return (bits + 0x1000u) & 0xffffe000u;  // ties away from zero
}
template <class T>
uint32_t pack(float low, float high) {
  return uint32_t{T(low).bits} | uint32_t{T(high).bits} << 16;
}
inline float exp2_approx(float x) { return exp2f(x); }

}  // namespace weft::kernels::simt::ptx
