// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#include <utility>

#include "kernels/cuda/ptx/ptx.cuh"

// cp.async and ldmatrix for loops that step through shared memory: addresses have 32 bits, and their constant part
// (kOffset, bytes) is an immediate of the instruction.

namespace weft::kernels::cuda {

/// Calls body(std::integral_constant<int, i>()) for i = 0 … kCount - 1: a loop whose index is a constant expression, as
/// an offset within an instruction must be.
template <int kCount, class Body>
__device__ __forceinline__ void unrolled(Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace weft::kernels::cuda

namespace weft::kernels::cuda::ptx {

/// A byte of shared memory. Integers are added to it in bytes.
using SharedAddress = uint32_t;
__device__ __forceinline__ SharedAddress to_shared(void* pointer) { return shared_address(pointer); }

/// Like cp_async_zfill<16>: copies all 16 bytes if `there`, else writes zeros.
template <int kOffset>
__device__ __forceinline__ void cp_async_zfill_at(SharedAddress shared, const void* global, bool there) {
  asm volatile("cp.async.cg.shared.global [%0+%3], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(there ? 16 : 0),
               "n"(kOffset)
               : "memory");
}

/// Like ldmatrix_x4 and ldmatrix_x4_trans.
#define WEFT_LDMATRIX_AT(name, trans)                                                           \
  template <int kOffset>                                                                        \
  __device__ __forceinline__ void name(uint32_t(&r)[4], SharedAddress row) {                    \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4+%5];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                               \
                 : "r"(row), "n"(kOffset)                                                       \
                 : "memory");                                                                   \
  }
WEFT_LDMATRIX_AT(ldmatrix_x4_at, "")
WEFT_LDMATRIX_AT(ldmatrix_x4_trans_at, ".trans")
#undef WEFT_LDMATRIX_AT

}  // namespace weft::kernels::cuda::ptx
