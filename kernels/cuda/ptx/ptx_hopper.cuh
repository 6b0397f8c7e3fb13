// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/ptx/ptx.cuh"
#include "kernels/cuda/ptx/tensor_map.cuh"

// PTX of compute capability 9.0 (PTX ISA 8.5): barriers in shared memory that count arrivals and bytes (mbarrier), the
// tensor memory accelerator (TMA), clusters of blocks, register budgets. Only files named *_sm90.cu, which are compiled
// for sm_90a alone, may include this.
//
// Threads access shared memory through the generic proxy, TMA and wgmma through the async proxy. A thread's stores
// become visible to TMA and wgmma by fence_proxy_async() in that thread, then a barrier. This pair must also separate a
// thread's loads or stores from a TMA load to the same memory. Data that TMA loads are visible to threads that wait on
// its mbarrier.

namespace weft::kernels::cuda {

namespace ptx {

/// An mbarrier in shared memory. A phase ends when its expected arrivals and its expected bytes are complete; phases
/// have parity 0, 1, 0, 1, …
struct alignas(8) Barrier {
  uint64_t state;
};

/// Called by one thread, once, before any use of the barrier: each phase ends after `arrivals` arrivals.
__device__ __forceinline__ void mbarrier_init(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// Called by the thread that called mbarrier_init, after its last call: TMA and the other blocks of the cluster see the
/// barriers after the next __syncthreads() (cluster_sync() for other blocks).
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Like mbarrier_arrive; the phase also waits for `bytes` more bytes of TMA loads.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
/// Arrives at the barrier at the same offset in the shared memory of block `rank` of the cluster: memory that this warp
/// has read may be overwritten. The arrival has no `.release.cluster`, which would wait until every store of this
/// thread is visible on the whole GPU (MEMBAR.ALL.GPU); so it publishes no stores.
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

/// Orders this thread's loads and stores of shared memory before later accesses by TMA and wgmma; a barrier must
/// follow.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Prefetches the map into the cache from which TMA reads maps.
__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// The larger value, or NaN if either is NaN.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}

/// Prefetches the line of global memory at `address` into L2.
__device__ __forceinline__ void prefetch_l2(const void* address) { asm volatile("prefetch.L2 [%0];" ::"l"(address)); }

// TMA loads, issued by one thread: the map's box at `coordinates`, innermost dimension first, is written to `shared`
// (aligned to 128 bytes; with a swizzle, to 8 of its lines). All its bytes count towards `barrier`, also those of
// elements outside the tensor, which become 0.

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
/// Multicasts to the same offset, and signals the same barrier, in each block of the cluster whose bit is set in
/// `blocks`.
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
/// Loads from an im2col map over [N,H,W,C]: the map's number of windows, from the window with its corner at (w, h) of
/// image n, continuing in the next row and image; in each window the pixel at (offset_w, offset_h), its channels from
/// c.
__device__ __forceinline__ void tma_load_im2col(void* shared, const TensorMap& map, Barrier* barrier, int c, int w,
                                                int h, int n, uint16_t offset_w, uint16_t offset_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], "
      "[%2], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c), "r"(w), "r"(h), "r"(n), "h"(offset_w), "h"(offset_h)
      : "memory");
}
/// Copies `bytes` (a multiple of 16) from global to shared memory, both aligned to 16.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, int bytes, Barrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

// TMA stores, issued by one thread, of shared memory that the block wrote and fenced (fence_proxy_async, barrier).
// Elements outside the tensor are not written.

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
/// Commits this thread's stores since the last commit as one group.
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until at most kPending groups of this thread still read shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Waits until the previous kernel of the stream has ended and its stores are visible; returns at once if this kernel
/// began after that (launch_overlapped).
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/// Called by one thread of a block that starts no more work: once all blocks have called or ended, blocks of the next
/// kernel may start, up to their wait_for_previous_kernel().
__device__ __forceinline__ void allow_next_kernel() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/// Position of this block in its cluster (0 without one).
__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
/// Cluster barrier over all threads of all blocks; until wait returns, other blocks may access this block's shared
/// memory.
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

/// Named barrier `id` (1..15; 0 is __syncthreads) of `threads` threads, a multiple of 32, including those that only
/// arrive. All lanes of a warp must call it together.
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

/// True in one lane of the warp, always the same; all lanes must call it. The compiler then knows that one lane is
/// active and issues TMA instructions directly; under `lane == 0` it puts each into a loop over the lanes.
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

/// The inverse of ldmatrix_x4: lane 8 m + i gives the address of row i of matrix m.
__device__ __forceinline__ void stmatrix_x4(void* row, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace ptx
}  // namespace weft::kernels::cuda
