// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/ptx/ptx_hopper.cuh"

// wgmma (PTX ISA 8.5, section 9.7.15): 128 threads, a warpgroup, multiply a[64xK] by b[KxN] straight from shared
// memory, asynchronously; the accumulators stay in registers.
// Only files named *_sm90.cu may include this.
//
//   wgmma_fence();                                      // orders earlier accesses to the registers
//   for (…) wgmma<T, N>(sums, describe(a), describe(b));  // issued, not finished
//   wgmma_commit();
//   wgmma_wait<0>();                                    // now `sums` may be read and the tiles overwritten

namespace weft::kernels::cuda::ptx {

/// An operand's layout: K along the lines, or its rows (M of a, N of b).
enum class Along : int { depth = 0, rows = 1 };

}  // namespace weft::kernels::cuda::ptx

namespace weft::kernels::cuda::ptx {

/// wgmma's matrix descriptor of a tile in shared memory. `leading`, `stride`: bytes, multiples of 16, as in the ISA's
/// table for each swizzle and direction. For Along::depth with a swizzle of B bytes and lines of B bytes (B / 2
/// elements of K): leading is ignored, stride = 8 B (from 8 rows to the next 8), and the next 16 elements of K are 32
/// bytes further.
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* tile, Swizzle swizzle, uint32_t leading,
                                                     uint32_t stride) {
  return uint64_t{(shared_address(tile) & 0x3ffff) >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         static_cast<uint64_t>(swizzle) << 62;
}

/// Called by the warpgroup before the first wgmma, and whenever other instructions accessed its registers.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most the kPending newest groups of this warpgroup are in flight.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// clang-format off
#define WEFT_SUMS_8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WEFT_SUMS_16(d, i) WEFT_SUMS_8(d, i), WEFT_SUMS_8(d, i + 8)
#define WEFT_SUMS_32(d, i) WEFT_SUMS_16(d, i), WEFT_SUMS_16(d, i + 16)
#define WEFT_NAMES_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WEFT_NAMES_16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WEFT_NAMES_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WEFT_NAMES_48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WEFT_NAMES_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WEFT_NAMES_80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WEFT_NAMES_96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WEFT_NAMES_112 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WEFT_WGMMA_NAMES_8 "%0, %1, %2, %3"
#define WEFT_WGMMA_NAMES_32 WEFT_NAMES_0
#define WEFT_WGMMA_NAMES_64 WEFT_NAMES_0 ", " WEFT_NAMES_16
#define WEFT_WGMMA_NAMES_96 WEFT_NAMES_0 ", " WEFT_NAMES_16 ", " WEFT_NAMES_32
#define WEFT_WGMMA_NAMES_128 WEFT_NAMES_0 ", " WEFT_NAMES_16 ", " WEFT_NAMES_32 ", " WEFT_NAMES_48
#define WEFT_WGMMA_NAMES_192 WEFT_NAMES_0 ", " WEFT_NAMES_16 ", " WEFT_NAMES_32 ", " WEFT_NAMES_48 ", " WEFT_NAMES_64 ", " WEFT_NAMES_80
#define WEFT_WGMMA_NAMES_256 WEFT_NAMES_0 ", " WEFT_NAMES_16 ", " WEFT_NAMES_32 ", " WEFT_NAMES_48 ", " WEFT_NAMES_64 ", " WEFT_NAMES_80 ", " WEFT_NAMES_96 ", " WEFT_NAMES_112
#define WEFT_WGMMA_SUMS_8(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define WEFT_WGMMA_SUMS_32(d) WEFT_SUMS_16(d, 0)
#define WEFT_WGMMA_SUMS_64(d) WEFT_SUMS_32(d, 0)
#define WEFT_WGMMA_SUMS_96(d) WEFT_SUMS_32(d, 0), WEFT_SUMS_16(d, 32)
#define WEFT_WGMMA_SUMS_128(d) WEFT_SUMS_32(d, 0), WEFT_SUMS_32(d, 32)
#define WEFT_WGMMA_SUMS_192(d) WEFT_SUMS_32(d, 0), WEFT_SUMS_32(d, 32), WEFT_SUMS_32(d, 64)
#define WEFT_WGMMA_SUMS_256(d) WEFT_SUMS_32(d, 0), WEFT_SUMS_32(d, 32), WEFT_SUMS_32(d, 64), WEFT_SUMS_32(d, 96)

// One instruction: TYPE is bf16 or f16; A, B, … are the numbers of the asm operands after d. tf32 has a fixed layout.
#define WEFT_WGMMA(N, TYPE, A, B, ACCUMULATE, ALONG_A, ALONG_B) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ACCUMULATE ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" WEFT_WGMMA_NAMES_##N "}, %" A ", %" B ", add, 1, 1, %" ALONG_A ", %" ALONG_B ";\n}" \
               : WEFT_WGMMA_SUMS_##N(d) : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(along_a)), "n"(static_cast<int>(along_b)) : "memory")
#define WEFT_WGMMA_TF32(N, A, B, ACCUMULATE) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ACCUMULATE ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" WEFT_WGMMA_NAMES_##N "}, %" A ", %" B ", add, 1, 1;\n}" \
               : WEFT_WGMMA_SUMS_##N(d) : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)) : "memory")
#define WEFT_WGMMA_REGISTERS(N, TYPE, A0, A1, A2, A3, B, ACCUMULATE, ALONG_B) \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ACCUMULATE ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" WEFT_WGMMA_NAMES_##N "}, {%" A0 ", %" A1 ", %" A2 ", %" A3 "}, %" B ", add, 1, 1, %" ALONG_B ";\n}" \
               : WEFT_WGMMA_SUMS_##N(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(along_b)) : "memory")
// clang-format on

/// d[64xN] (+)= a[64x16] b[16xN], T = bf16 or f16, N one of 8, 32, 64, 96, 128, 192, 256. Without `accumulate` d is
/// overwritten. Thread t of the warpgroup, warp w = t / 32, group = t % 32 / 4, pair = t % 4, holds for each j < N / 8:
///   d[4 j .. +1]: (16 w + group, 8 j + 2 pair .. +1)   d[4 j + 2 .. +3]: (16 w + group + 8, 8 j + 2 pair .. +1)
/// T = float: d[64xN] (+)= a[64x8] b[8xN] in tf32, N one of 64, 128, 256, both along K. The lower 13 bits of an element
/// are truncated: round before (tensor maps do). The next 8 elements of K are also 32 bytes further.
template <class T, int N, Along along_a = Along::depth, Along along_b = Along::depth>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b, bool accumulate = true) {
  constexpr bool kBf16 = std::is_same_v<T, bf16>, kTf32 = std::is_same_v<T, float>;
  static_assert(kBf16 || kTf32 || std::is_same_v<T, f16>);
  static_assert(N == 8 || N == 32 || N == 64 || N == 96 || N == 128 || N == 192 || N == 256);
  static_assert(!kTf32 || ((N == 64 || N == 128 || N == 256) && along_a == Along::depth && along_b == Along::depth));
  if constexpr (N == 64 && kTf32)
    WEFT_WGMMA_TF32(64, "32", "33", "34");
  else if constexpr (N == 128 && kTf32)
    WEFT_WGMMA_TF32(128, "64", "65", "66");
  else if constexpr (N == 256 && kTf32)
    WEFT_WGMMA_TF32(256, "128", "129", "130");
  else if constexpr (N == 8 && kBf16)
    WEFT_WGMMA(8, "bf16", "4", "5", "6", "7", "8");
  else if constexpr (N == 8)
    WEFT_WGMMA(8, "f16", "4", "5", "6", "7", "8");
  else if constexpr (N == 32 && kBf16)
    WEFT_WGMMA(32, "bf16", "16", "17", "18", "19", "20");
  else if constexpr (N == 32)
    WEFT_WGMMA(32, "f16", "16", "17", "18", "19", "20");
  else if constexpr (N == 64 && kBf16)
    WEFT_WGMMA(64, "bf16", "32", "33", "34", "35", "36");
  else if constexpr (N == 64)
    WEFT_WGMMA(64, "f16", "32", "33", "34", "35", "36");
  else if constexpr (N == 96 && kBf16)
    WEFT_WGMMA(96, "bf16", "48", "49", "50", "51", "52");
  else if constexpr (N == 96)
    WEFT_WGMMA(96, "f16", "48", "49", "50", "51", "52");
  else if constexpr (N == 128 && kBf16)
    WEFT_WGMMA(128, "bf16", "64", "65", "66", "67", "68");
  else if constexpr (N == 128)
    WEFT_WGMMA(128, "f16", "64", "65", "66", "67", "68");
  else if constexpr (N == 192 && kBf16)
    WEFT_WGMMA(192, "bf16", "96", "97", "98", "99", "100");
  else if constexpr (N == 192)
    WEFT_WGMMA(192, "f16", "96", "97", "98", "99", "100");
  else if constexpr (N == 256 && kBf16)
    WEFT_WGMMA(256, "bf16", "128", "129", "130", "131", "132");
  else if constexpr (N == 256)
    WEFT_WGMMA(256, "f16", "128", "129", "130", "131", "132");
}

/// Like wgmma, with a from registers: warp w holds rows 16 w .. 16 w + 15 in the layout of mma_m16n8k16's a.
template <class T, int N, Along along_b = Along::depth>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, bool accumulate = true) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  static_assert(N == 32 || N == 64 || N == 96 || N == 128 || N == 192 || N == 256);
  constexpr bool kBf16 = std::is_same_v<T, bf16>;
  if constexpr (N == 32 && kBf16)
    WEFT_WGMMA_REGISTERS(32, "bf16", "16", "17", "18", "19", "20", "21", "22");
  else if constexpr (N == 32)
    WEFT_WGMMA_REGISTERS(32, "f16", "16", "17", "18", "19", "20", "21", "22");
  else if constexpr (N == 64 && kBf16)
    WEFT_WGMMA_REGISTERS(64, "bf16", "32", "33", "34", "35", "36", "37", "38");
  else if constexpr (N == 64)
    WEFT_WGMMA_REGISTERS(64, "f16", "32", "33", "34", "35", "36", "37", "38");
  else if constexpr (N == 96 && kBf16)
    WEFT_WGMMA_REGISTERS(96, "bf16", "48", "49", "50", "51", "52", "53", "54");
  else if constexpr (N == 96)
    WEFT_WGMMA_REGISTERS(96, "f16", "48", "49", "50", "51", "52", "53", "54");
  else if constexpr (N == 128 && kBf16)
    WEFT_WGMMA_REGISTERS(128, "bf16", "64", "65", "66", "67", "68", "69", "70");
  else if constexpr (N == 128)
    WEFT_WGMMA_REGISTERS(128, "f16", "64", "65", "66", "67", "68", "69", "70");
  else if constexpr (N == 192 && kBf16)
    WEFT_WGMMA_REGISTERS(192, "bf16", "96", "97", "98", "99", "100", "101", "102");
  else if constexpr (N == 192)
    WEFT_WGMMA_REGISTERS(192, "f16", "96", "97", "98", "99", "100", "101", "102");
  else if constexpr (N == 256 && kBf16)
    WEFT_WGMMA_REGISTERS(256, "bf16", "128", "129", "130", "131", "132", "133", "134");
  else if constexpr (N == 256)
    WEFT_WGMMA_REGISTERS(256, "f16", "128", "129", "130", "131", "132", "133", "134");
}

#undef WEFT_WGMMA
#undef WEFT_WGMMA_TF32
#undef WEFT_WGMMA_REGISTERS
#undef WEFT_WGMMA_NAMES_8
#undef WEFT_WGMMA_SUMS_8
#undef WEFT_WGMMA_NAMES_32
#undef WEFT_WGMMA_SUMS_32
#undef WEFT_WGMMA_NAMES_64
#undef WEFT_WGMMA_SUMS_64
#undef WEFT_WGMMA_NAMES_96
#undef WEFT_WGMMA_SUMS_96
#undef WEFT_WGMMA_NAMES_128
#undef WEFT_WGMMA_SUMS_128
#undef WEFT_WGMMA_NAMES_192
#undef WEFT_WGMMA_SUMS_192
#undef WEFT_WGMMA_NAMES_256
#undef WEFT_WGMMA_SUMS_256
#undef WEFT_NAMES_0
#undef WEFT_NAMES_16
#undef WEFT_NAMES_32
#undef WEFT_NAMES_48
#undef WEFT_NAMES_64
#undef WEFT_NAMES_80
#undef WEFT_NAMES_96
#undef WEFT_NAMES_112
#undef WEFT_SUMS_8
#undef WEFT_SUMS_16
#undef WEFT_SUMS_32

}  // namespace weft::kernels::cuda::ptx
