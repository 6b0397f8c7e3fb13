// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/tensor_map.cuh"

// PTX of compute capability 9.0 (PTX ISA 8.5): barriers in shared memory that count arrivals and bytes (mbarrier), the
// tensor memory accelerator (TMA), clusters of blocks, register budgets. Only files named *_sm90.cu, which are compiled
// for sm_90a alone, may include this.
//
// Three proxies write shared memory: threads (generic), TMA and wgmma (async). What threads stored becomes visible to
// TMA and wgmma by fence_proxy_async() in the storing thread and a barrier after it; the same must come between what
// threads read or stored and TMA's load over it. What TMA loaded becomes visible to threads that wait on its mbarrier.

namespace weft::kernels::cuda {

namespace ptx {

/// A barrier in shared memory. A phase ends when its expected arrivals have come and its expected bytes have landed;
/// phases have parity 0, 1, 0, 1, …
struct alignas(8) Barrier {
  uint64_t state;
};

/// One thread, once, before any use of the barrier: the phase ends after `arrivals` arrivals.
__device__ __forceinline__ void mbarrier_init(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// By the thread that called mbarrier_init, after the last one: TMA and the other blocks of the cluster see the
/// barriers after the next __syncthreads() (cluster_sync() for other blocks).
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// As mbarrier_arrive, and the phase waits for `bytes` more bytes of TMA loads.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
/// Arrives at the barrier at the same offset in the shared memory of block `rank` of the cluster: what this warp has read
/// there may be overwritten. Without `.release.cluster`, which would wait for every store of this thread to reach the
/// whole GPU (MEMBAR.ALL.GPU): what a thread has stored is not handed over by this.
__device__ __forceinline__ void mbarrier_arrive_cluster(Barrier* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}
/// Waits until the phase of `parity` has ended: a fresh barrier waits at 0 and passes at 1.
__device__ __forceinline__ void mbarrier_wait(Barrier* barrier, int parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

/// Before TMA or wgmma reads what this thread stored, or TMA loads over what it read or stored; a barrier must follow.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Brings the map into the cache that TMA reads it from.
__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// The larger one, or NaN if one is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}

/// Brings the line of global memory at `address` into L2.
__device__ __forceinline__ void prefetch_l2(const void* address) { asm volatile("prefetch.L2 [%0];" ::"l"(address)); }

// TMA loads, started by one thread: the map's box at `coordinates`, innermost dimension first, arrives at `shared`
// (aligned to 128 bytes, to 8 lines of the swizzle if there is one); its bytes count towards `barrier`, those of
// elements outside of the tensor too, which become 0.

__device__ __forceinline__ void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
          "r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
      : "memory");
}
__device__ __forceinline__ void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ __forceinline__ void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1, int c2,
                                         int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
/// To the same offset in each block of the cluster whose bit is set in `blocks`, and to the same barrier there.
__device__ __forceinline__ void tma_load_multicast(void* shared, const TensorMap& map, Barrier* barrier,
                                                   uint16_t blocks, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%4, %5}], [%2], %3;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1)
      : "memory");
}
__device__ __forceinline__ void tma_load_multicast(void* shared, const TensorMap& map, Barrier* barrier,
                                                   uint16_t blocks, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%4, %5, %6}], [%2], %3;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "h"(blocks), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
/// Of an im2col map over [N,H,W,C]: its pixels beginning with the window whose corner is (w, h) of image n, wrapping to
/// the next row and image; of each window the pixel at (offset_w, offset_h), its channels from c.
__device__ __forceinline__ void tma_load_im2col(void* shared, const TensorMap& map, Barrier* barrier, int c, int w,
                                                int h, int n, uint16_t offset_w, uint16_t offset_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], "
      "[%2], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c), "r"(w), "r"(h), "r"(n), "h"(offset_w), "h"(offset_h)
      : "memory");
}
/// `bytes` (a multiple of 16) from global to shared memory, both aligned to 16.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, int bytes, Barrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

// TMA stores, started by one thread, of what the block wrote and fenced (fence_proxy_async, barrier). Elements outside
// of the tensor are not written.

__device__ __forceinline__ void tma_store(const TensorMap& map, const void* shared, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1)
               : "memory");
}
__device__ __forceinline__ void tma_store(const TensorMap& map, const void* shared, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
__device__ __forceinline__ void tma_store(const TensorMap& map, const void* shared, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
/// Closes the group of the stores that this thread has started since the last commit.
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until at most kPending groups of this thread still read shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
/// Waits until at most kPending groups of this thread are still under way.
template <int kPending>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Position of this block in its cluster (0 without one).
__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
/// All threads of all blocks of the cluster; a block may leave its shared memory to others until wait returns.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
/// This block's shared `pointer` mapped to block `rank` of the cluster, as a pointer to read and write.
template <class T>
__device__ __forceinline__ T* cluster_map(T* pointer, int rank) {
  uint64_t mapped;
  asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return reinterpret_cast<T*>(mapped);
}

/// Barrier kId (1..15; 0 is __syncthreads) of `threads` threads, a multiple of 32, those that only arrive counted in.
/// Each warp comes as a whole.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Sets this warpgroup's registers per thread (a multiple of 8 from 24 to 240): release takes effect at once, acquire
/// waits until others have released enough.
template <int kRegisters>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void acquire_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// True in one lane of the warp, which must be whole: always the same one. The compiler knows that one lane is left, and
/// issues TMA instructions as they are; under `lane == 0` each sits in a loop over the lanes.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

/// The reverse of ldmatrix_x4 (_trans: of ldmatrix_x4_trans): lane 8 m + i names row i of matrix m.
__device__ __forceinline__ void stmatrix_x4(void* row, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace ptx
}  // namespace weft::kernels::cuda
