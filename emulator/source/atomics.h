// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/kernel_api.h"

// atomicX of CUDA C++: really atomic, because blocks run on several processors. Part of the emulated cuda_runtime.h.

namespace emulator::source {

// Not instrumented in the checked build: check_atomic reports the access instead.
#define WEFT_SIMT_ATOMIC \
  template <class T>     \
  __attribute__((no_sanitize("thread")))

template <class T, class Update>
__attribute__((no_sanitize("thread"))) T atomic_update(T* address, SourceLine where, Update update) {
  yield_when_seeded();
  check_atomic(address, sizeof(T), where);
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  T wanted = update(old);
  while (!__atomic_compare_exchange(address, &old, &wanted, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    wanted = update(old);
  return old;
}

WEFT_SIMT_ATOMIC T atomic_exchange(T* address, T value, SourceLine where) {
  yield_when_seeded();
  check_atomic(address, sizeof(T), where);
  T old;
  __atomic_exchange(address, &value, &old, __ATOMIC_ACQ_REL);
  return old;
}

WEFT_SIMT_ATOMIC T atomic_compare_exchange(T* address, T expected, T value, SourceLine where) {
  yield_when_seeded();
  check_atomic(address, sizeof(T), where);
  __atomic_compare_exchange(address, &expected, &value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
#undef WEFT_SIMT_ATOMIC

}  // namespace emulator::source

namespace emulator::source::api {

#define WEFT_SIMT_ATOMIC_ADD(T)                                                    \
  inline T atomicAdd(T* address, T value, WEFT_SIMT_HERE) {                        \
    return atomic_update(address, where, [=](T old) -> T { return old + value; }); \
  }
#define WEFT_SIMT_ATOMIC_ORDER(T)                                                           \
  inline T atomicMin(T* address, T value, WEFT_SIMT_HERE) {                                 \
    return atomic_update(address, where, [=](T old) { return value < old ? value : old; }); \
  }                                                                                         \
  inline T atomicMax(T* address, T value, WEFT_SIMT_HERE) {                                 \
    return atomic_update(address, where, [=](T old) { return value > old ? value : old; }); \
  }                                                                                         \
  inline T atomicAnd(T* address, T value, WEFT_SIMT_HERE) {                                 \
    return atomic_update(address, where, [=](T old) -> T { return old & value; });          \
  }                                                                                         \
  inline T atomicOr(T* address, T value, WEFT_SIMT_HERE) {                                  \
    return atomic_update(address, where, [=](T old) -> T { return old | value; });          \
  }                                                                                         \
  inline T atomicXor(T* address, T value, WEFT_SIMT_HERE) {                                 \
    return atomic_update(address, where, [=](T old) -> T { return old ^ value; });          \
  }
#define WEFT_SIMT_ATOMIC_SWAP(T) \
  inline T atomicExch(T* address, T value, WEFT_SIMT_HERE) { return atomic_exchange(address, value, where); }
#define WEFT_SIMT_ATOMIC_CAS(T)                                         \
  inline T atomicCAS(T* address, T expected, T value, WEFT_SIMT_HERE) { \
    return atomic_compare_exchange(address, expected, value, where);    \
  }

WEFT_SIMT_ATOMIC_ADD(int)
WEFT_SIMT_ATOMIC_ADD(unsigned)
WEFT_SIMT_ATOMIC_ADD(unsigned long long)
WEFT_SIMT_ATOMIC_ADD(float)
WEFT_SIMT_ATOMIC_ADD(double)
WEFT_SIMT_ATOMIC_ORDER(int)
WEFT_SIMT_ATOMIC_ORDER(unsigned)
WEFT_SIMT_ATOMIC_ORDER(long long)
WEFT_SIMT_ATOMIC_ORDER(unsigned long long)
WEFT_SIMT_ATOMIC_SWAP(int)
WEFT_SIMT_ATOMIC_SWAP(unsigned)
WEFT_SIMT_ATOMIC_SWAP(unsigned long long)
WEFT_SIMT_ATOMIC_SWAP(float)
WEFT_SIMT_ATOMIC_CAS(unsigned short)
WEFT_SIMT_ATOMIC_CAS(int)
WEFT_SIMT_ATOMIC_CAS(unsigned)
WEFT_SIMT_ATOMIC_CAS(unsigned long long)
#undef WEFT_SIMT_ATOMIC_ADD
#undef WEFT_SIMT_ATOMIC_ORDER
#undef WEFT_SIMT_ATOMIC_SWAP
#undef WEFT_SIMT_ATOMIC_CAS
inline int atomicSub(int* address, int value, WEFT_SIMT_HERE) { return atomicAdd(address, -value, where); }
inline unsigned atomicSub(unsigned* address, unsigned value, WEFT_SIMT_HERE) {
  return atomicAdd(address, 0u - value, where);
}
inline unsigned atomicInc(unsigned* address, unsigned limit, WEFT_SIMT_HERE) {
  return atomic_update(address, where, [=](unsigned old) { return old >= limit ? 0u : old + 1; });
}

}  // namespace emulator::source::api
