// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

// Instructions of compute capability 9.0 for planted faults: mbarriers, bulk copies, wgmma.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace hopper {

inline __device__ unsigned shared_address(const void* memory) {
  return static_cast<unsigned>(__cvta_generic_to_shared(memory));
}

inline __device__ void init_unfenced(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
inline __device__ void init(unsigned barrier, int count) {
  init_unfenced(barrier, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
inline __device__ void arrive(unsigned barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
inline __device__ void arrive_relaxed(unsigned barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.relaxed.cta.shared::cta.b64 state, [%0]; }" ::"r"(barrier)
               : "memory");
}
inline __device__ void wait(unsigned barrier, int parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
}
inline __device__ void load(int* to, const int* from, unsigned bytes, unsigned barrier) {
  asm volatile(
      "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%3], %2; }\n\t"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
inline __device__ void store(int* to, const int* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\tcp.async.bulk.commit_group;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
template <int kOpen>
__device__ void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOpen) : "memory");
}
inline __device__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// 64 x 8 x 16, both operands in shared memory without a swizzle.
inline __device__ void multiply(const void* a, const void* b, float* d) {
  const auto descriptor = [](const void* matrix) {
    return static_cast<unsigned long long>((shared_address(matrix) & 0x3ffff) >> 4) | 8ull << 16 | 16ull << 32;
  };
  asm volatile(
      "wgmma.fence.sync.aligned;\n\t"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n\t"
      "wgmma.commit_group.sync.aligned;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(descriptor(a)), "l"(descriptor(b))
      : "memory");
}

}  // namespace hopper

#endif
