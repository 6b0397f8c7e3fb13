// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/half.h"

// Every PTX instruction that Weft writes by hand (PTX ISA 8.5). Kernels use these functions and no inline assembly.

namespace weft::kernels::cuda::ptx {


__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Loads 16 bytes from a 16-byte aligned address in one access.
__device__ __forceinline__ uint4 ld16(const void* address) { return *static_cast<const uint4*>(address); }
__device__ __forceinline__ void st16(void* address, uint4 value) { *static_cast<uint4*>(address) = value; }

/// Issues a copy of 4, 8 or 16 aligned bytes from global to shared memory. 16 bytes bypass L1.
template <int kBytes>
__device__ __forceinline__ void cp_async(void* shared, const void* global) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(shared)), "l"(global), "n"(kBytes)
                 : "memory");
}
/// Like cp_async, but only the first `source_bytes` are read (0: `global` is ignored); the rest becomes zero.
template <int kBytes>
__device__ __forceinline__ void cp_async_zfill(void* shared, const void* global, int source_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                 "r"(source_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                 "n"(kBytes), "r"(source_bytes)
                 : "memory");
}
/// Commits this thread's copies since the last commit as one group.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most the kPending newest groups of this thread are in flight. Other threads see the bytes after a
/// __syncthreads().
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Loads 8x8 matrices of 16-bit elements from shared memory: lane 8 m + i gives the address of row i of matrix m (16
/// bytes, aligned). Lane l gets elements (l / 4, 2 (l % 4)) and the next one of each matrix, low half first; the _trans
/// forms transpose.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// d[16x8] += a[16x16] b[16x8], T = bf16 or f16, f32 accumulators. With group = lane / 4 and pair = lane % 4, low half
/// first:
///   a[0]: (group, 2 pair..+1)  a[1]: (group + 8, 2 pair..)  a[2]: (group, 2 pair + 8..)  a[3]: (group + 8, 2 pair
///   + 8..) b[0]: (2 pair..+1, group)  b[1]: (2 pair + 8.., group) d[0..1]: (group, 2 pair..+1)  d[2..3]: (group + 8, 2
///   pair..+1)
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  if constexpr (std::is_same_v<T, bf16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/// d[16x8] += a[16x8] b[8x8] on f32 bits of which the lower 13 are ignored (see to_tf32):
///   a[0]: (group, pair)  a[1]: (group + 8, pair)  a[2]: (group, pair + 4)  a[3]: (group + 8, pair + 4)
///   b[0]: (pair, group)  b[1]: (pair + 4, group)   d as above
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// f32 to tf32 (10 bits of significand), to nearest, ties away from zero.
__device__ __forceinline__ uint32_t to_tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
/// Two f32 rounded to nearest even into one register of bf16 or f16, `low` in the lower half.
template <class T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  uint32_t bits;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
/// 2^x with a relative error of about 2^-22; subnormal results become 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// 1 / x with an error of one unit in the last place; subnormal results become 0.
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace weft::kernels::cuda::ptx
