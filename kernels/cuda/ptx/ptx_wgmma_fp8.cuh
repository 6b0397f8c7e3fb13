// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/fp8.h"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"

// wgmma for FP8: 32 k per instruction, both operands along K (wgmma transposes two-byte types only).
// Only files named *_sm90.cu may include this.

namespace weft::kernels::cuda {

/// The element type of an FP8 GEMM in gemm_wgmma.cuh: a has this format, b is e4m3.
template <Fp8 a>
struct Fp8Product {
  uint8_t code;
};

namespace ptx {

/// d[64xN] (+)= a[64x32] b[32xN], N one of 64, 128, 256: see wgmma() for 16-bit types.
// clang-format off
#define WEFT_FP8_8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WEFT_FP8_32(d, i) WEFT_FP8_8(d, i), WEFT_FP8_8(d, i + 8), WEFT_FP8_8(d, i + 16), WEFT_FP8_8(d, i + 24)
#define WEFT_FP8_SUMS_64(d) WEFT_FP8_32(d, 0)
#define WEFT_FP8_SUMS_128(d) WEFT_FP8_32(d, 0), WEFT_FP8_32(d, 32)
#define WEFT_FP8_SUMS_256(d) WEFT_FP8_32(d, 0), WEFT_FP8_32(d, 32), WEFT_FP8_32(d, 64), WEFT_FP8_32(d, 96)
#define WEFT_FP8_NAMES_64 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WEFT_FP8_NAMES_128 WEFT_FP8_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WEFT_FP8_NAMES_256 WEFT_FP8_NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
// clang-format on
#define WEFT_WGMMA_FP8(FORMAT, N, A, B, ACCUMULATE)                                                           \
  template <>                                                                                                 \
  __device__ __forceinline__ void wgmma<Fp8Product<Fp8::FORMAT>, N>(float(&d)[N / 2], uint64_t a, uint64_t b, \
                                                                    bool accumulate) {                        \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ACCUMULATE                                          \
                 ", 0;\n"                                                                                     \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32." #FORMAT ".e4m3 {" WEFT_FP8_NAMES_##N       \
                 "}, %" A ", %" B ", add, 1, 1;\n}"                                                           \
                 : WEFT_FP8_SUMS_##N(d)                                                                       \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate))                                          \
                 : "memory");                                                                                 \
  }

WEFT_WGMMA_FP8(e4m3, 64, "32", "33", "34")
WEFT_WGMMA_FP8(e4m3, 128, "64", "65", "66")
WEFT_WGMMA_FP8(e4m3, 256, "128", "129", "130")
WEFT_WGMMA_FP8(e5m2, 64, "32", "33", "34")
WEFT_WGMMA_FP8(e5m2, 128, "64", "65", "66")
WEFT_WGMMA_FP8(e5m2, 256, "128", "129", "130")

#undef WEFT_WGMMA_FP8
#undef WEFT_FP8_8
#undef WEFT_FP8_32
#undef WEFT_FP8_SUMS_64
#undef WEFT_FP8_SUMS_128
#undef WEFT_FP8_SUMS_256
#undef WEFT_FP8_NAMES_64
#undef WEFT_FP8_NAMES_128
#undef WEFT_FP8_NAMES_256

}  // namespace ptx

}  // namespace weft::kernels::cuda
