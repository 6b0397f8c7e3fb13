// SPDX-License-Identifier: Apache-2.0
#pragma once

/// WEFT_UNROLL unrolls a loop with a constant trip count whose body indexes register arrays; WEFT_UNROLL_BY(n), n a
/// constant expression, unrolls a loop partially.
#if defined(__CUDACC__)
#define WEFT_PRAGMA(text) _Pragma(#text)
#define WEFT_UNROLL _Pragma("unroll")
#define WEFT_UNROLL_BY(n) WEFT_PRAGMA(unroll n)
#else
#define WEFT_UNROLL _Pragma("GCC unroll 16")
#define WEFT_UNROLL_BY(n)
#endif
