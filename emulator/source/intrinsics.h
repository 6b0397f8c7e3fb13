// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <math.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "emulator/source/kernel_api.h"
#include "emulator/source/vector_types.h"

// Arithmetic and bit functions that CUDA C++ has and the host does not. Part of the emulated cuda_runtime.h. The fast
// approximate forms (__expf, …) are the exact ones here: results differ from a GPU's in the last bits.

namespace emulator::source::api {

template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(T(a), T(b));
  else
    return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(T(a), T(b));
  else
    return T(a) < T(b) ? T(b) : T(a);
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline float fdividef(float a, float b) { return a / b; }
inline float sinpif(float x) { return static_cast<float>(sin(3.14159265358979323846 * x)); }
inline float cospif(float x) { return static_cast<float>(cos(3.14159265358979323846 * x)); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }

// glibc's <math.h> declares functions of these names for its own use, hence macros.
#define __expf(x) (::expf(x))
#define __exp10f(x) (::powf(10.0f, (x)))
#define __logf(x) (::logf(x))
#define __log2f(x) (::log2f(x))
#define __log10f(x) (::log10f(x))
#define __powf(x, y) (::powf((x), (y)))
#define __sinf(x) (::sinf(x))
#define __cosf(x) (::cosf(x))
#define __tanf(x) (::tanf(x))
#define __sincosf(x, s, c) (::sincosf((x), (s), (c)))
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

template <class To, class From>
To reinterpret_bits(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
inline int __float_as_int(float x) { return reinterpret_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return reinterpret_bits<unsigned>(x); }
inline float __int_as_float(int x) { return reinterpret_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return reinterpret_bits<float>(x); }
inline long long __double_as_longlong(double x) { return reinterpret_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return reinterpret_bits<double>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(nearbyintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>((int64_t{a} * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = (uint64_t{b} << 32) | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = (selector >> (4 * i)) & 0xfu;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7u))) & 0xffu;
    if (pick & 8u) byte = byte & 0x80u ? 0xffu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((((uint64_t{high} << 32) | low) << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((uint64_t{high} << 32) | low) >> (shift & 31u));
}

// Cache hints: plain accesses here, inlined so that reports name the caller's line.
#define WEFT_SIMT_LOAD(name)                                       \
  template <class T>                                               \
  __attribute__((always_inline)) inline T name(const T* address) { \
    return *address;                                               \
  }
#define WEFT_SIMT_STORE(name)                                            \
  template <class T>                                                     \
  __attribute__((always_inline)) inline void name(T* address, T value) { \
    *address = value;                                                    \
  }
WEFT_SIMT_LOAD(__ldg)
WEFT_SIMT_LOAD(__ldcs)
WEFT_SIMT_LOAD(__ldcg)
WEFT_SIMT_LOAD(__ldca)
WEFT_SIMT_STORE(__stcs)
WEFT_SIMT_STORE(__stcg)
WEFT_SIMT_STORE(__stwt)
#undef WEFT_SIMT_LOAD
#undef WEFT_SIMT_STORE

[[noreturn]] inline void __trap(WEFT_SIMT_HERE) { fail_kernel("__trap()", where); }

}  // namespace emulator::source::api
