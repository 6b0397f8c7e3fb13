// SPDX-License-Identifier: Apache-2.0
// The functions that g++ -fsanitize=thread calls around every memory access. Kernels are compiled with that flag and
// linked without it, so that they call these instead of ThreadSanitizer's.
#include "emulator/source/instrument.h"

#include <cstdint>

namespace simt = emulator::source;

#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define WEFT_ACCESS(bytes)                                                                                           \
  void __tsan_read##bytes(void* address) { simt::instrumented_read<bytes>(address, __builtin_return_address(0)); }   \
  void __tsan_write##bytes(void* address) { simt::instrumented_write<bytes>(address, __builtin_return_address(0)); } \
  void __tsan_unaligned_read##bytes(void* address) {                                                                 \
    simt::instrumented_read<bytes>(address, __builtin_return_address(0));                                            \
  }                                                                                                                  \
  void __tsan_unaligned_write##bytes(void* address) {                                                                \
    simt::instrumented_write<bytes>(address, __builtin_return_address(0));                                           \
  }
WEFT_ACCESS(1)
WEFT_ACCESS(2)
WEFT_ACCESS(4)
WEFT_ACCESS(8)
WEFT_ACCESS(16)

void __tsan_read_range(void* address, unsigned long bytes) {
  simt::instrumented_read_range(address, bytes, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long bytes) {
  simt::instrumented_write_range(address, bytes, __builtin_return_address(0));
}

// Atomics of the launchers' own code; kernels use atomicX, which reports itself.
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

#define WEFT_ATOMIC(bits, T)                                                                                        \
  T __tsan_atomic##bits##_load(const volatile T* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##bits##_store(volatile T* p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* p, T v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* p, T v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }   \
  T __tsan_atomic##bits##_fetch_xor(volatile T* p, T v, int) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); } \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T v, int, int) {                   \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
  }                                                                                                                 \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T v, int, int) {                     \
    return __atomic_compare_exchange_n(p, expected, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
  }
WEFT_ATOMIC(8, unsigned char)
WEFT_ATOMIC(16, unsigned short)
WEFT_ATOMIC(32, unsigned)
WEFT_ATOMIC(64, unsigned long)

}  // extern "C"
