// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/hopper.h"

// kernels/cuda/ptx_hopper.cuh on the emulator: see there for what each function does.

namespace weft::kernels::simt::ptx {

struct alignas(8) Barrier {
  uint64_t state;
};

inline void mbarrier_init(Barrier* barrier, int arrivals, WEFT_SIMT_HERE) {
  emulator::source::mbarrier_init(barrier, arrivals, where);
}
inline void mbarrier_init_fence(WEFT_SIMT_HERE) { emulator::source::mbarrier_init_fence(where); }
inline void mbarrier_arrive(Barrier* barrier, WEFT_SIMT_HERE) {
  emulator::source::mbarrier_arrive(barrier, -1, 0, where);
}
inline void mbarrier_arrive_expect_tx(Barrier* barrier, int bytes, WEFT_SIMT_HERE) {
  emulator::source::mbarrier_arrive(barrier, -1, bytes, where);
}
inline void mbarrier_arrive_cluster(Barrier* barrier, int rank, WEFT_SIMT_HERE) {
  emulator::source::mbarrier_arrive(barrier, rank, 0, where);
}
inline void mbarrier_wait(Barrier* barrier, int parity, WEFT_SIMT_HERE) {
  emulator::source::mbarrier_wait(barrier, parity, where);
}
inline void fence_proxy_async(WEFT_SIMT_HERE) { emulator::source::fence_proxy_async(where); }

inline void prefetch_tensor_map(const TensorMap& map, WEFT_SIMT_HERE) {
  emulator::source::check_tensor_map(&map, where);
}

inline float max_or_nan(float a, float b) { return a > b || a != a ? a : b; }
inline void prefetch_l2(const void*) {}

inline void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1, WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, 0, {2, {c0, c1}, false, {}}, where);
}
inline void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1, int c2, WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, 0, {3, {c0, c1, c2}, false, {}}, where);
}
inline void tma_load(void* shared, const TensorMap& map, Barrier* barrier, int c0, int c1, int c2, int c3,
                     WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, 0, {4, {c0, c1, c2, c3}, false, {}}, where);
}
inline void tma_load_multicast(void* shared, const TensorMap& map, Barrier* barrier, uint16_t blocks, int c0, int c1,
                               WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, blocks, {2, {c0, c1}, false, {}}, where);
}
inline void tma_load_multicast(void* shared, const TensorMap& map, Barrier* barrier, uint16_t blocks, int c0, int c1,
                               int c2, WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, blocks, {3, {c0, c1, c2}, false, {}}, where);
}
inline void tma_load_im2col(void* shared, const TensorMap& map, Barrier* barrier, int c, int w, int h, int n,
                            uint16_t offset_w, uint16_t offset_h, WEFT_SIMT_HERE) {
  emulator::source::tma_load(shared, &map, barrier, 0, {4, {c, w, h, n}, true, {offset_w, offset_h}}, where);
}
inline void bulk_load(void* shared, const void* global, int bytes, Barrier* barrier, WEFT_SIMT_HERE) {
  emulator::source::bulk_load(shared, global, bytes, barrier, where);
}

inline void tma_store(const TensorMap& map, const void* shared, int c0, int c1, WEFT_SIMT_HERE) {
  emulator::source::tma_store(&map, shared, {2, {c0, c1}, false, {}}, where);
}
inline void tma_store(const TensorMap& map, const void* shared, int c0, int c1, int c2, WEFT_SIMT_HERE) {
  emulator::source::tma_store(&map, shared, {3, {c0, c1, c2}, false, {}}, where);
}
inline void tma_store(const TensorMap& map, const void* shared, int c0, int c1, int c2, int c3, WEFT_SIMT_HERE) {
  emulator::source::tma_store(&map, shared, {4, {c0, c1, c2, c3}, false, {}}, where);
}
inline void tma_store_commit(WEFT_SIMT_HERE) { emulator::source::tma_store_commit(where); }
template <int kPending>
void tma_store_wait_read(WEFT_SIMT_HERE) {
  emulator::source::tma_store_wait(kPending, true, where);
}
template <int kPending>
void tma_store_wait(WEFT_SIMT_HERE) {
  emulator::source::tma_store_wait(kPending, false, where);
}

inline int cluster_rank() { return emulator::source::cluster_rank(); }
inline void cluster_arrive(WEFT_SIMT_HERE) { emulator::source::cluster_arrive(where); }
inline void cluster_wait(WEFT_SIMT_HERE) { emulator::source::cluster_wait(where); }
inline void cluster_sync(WEFT_SIMT_HERE) {
  emulator::source::cluster_arrive(where);
  emulator::source::cluster_wait(where);
}
template <class T>
T* cluster_map(T* pointer, int rank, WEFT_SIMT_HERE) {
  return static_cast<T*>(emulator::source::cluster_map(pointer, rank, where));
}

inline void named_barrier_sync(int id, int threads, WEFT_SIMT_HERE) {
  emulator::source::named_barrier(id, threads, true, where);
}
inline void named_barrier_arrive(int id, int threads, WEFT_SIMT_HERE) {
  emulator::source::named_barrier(id, threads, false, where);
}

template <int kRegisters>
void release_registers(WEFT_SIMT_HERE) {
  static_assert(kRegisters >= 24 && kRegisters <= 240 && kRegisters % 8 == 0);
  emulator::source::set_registers(kRegisters, true, where);
}
template <int kRegisters>
void acquire_registers(WEFT_SIMT_HERE) {
  static_assert(kRegisters >= 24 && kRegisters <= 240 && kRegisters % 8 == 0);
  emulator::source::set_registers(kRegisters, false, where);
}

inline bool elect_one(WEFT_SIMT_HERE) { return emulator::source::elect_one(where); }

inline void stmatrix_x4(void* row, const uint32_t (&r)[4], WEFT_SIMT_HERE) {
  emulator::source::stmatrix(row, r, false, where);
}
inline void stmatrix_x4_trans(void* row, const uint32_t (&r)[4], WEFT_SIMT_HERE) {
  emulator::source::stmatrix(row, r, true, where);
}

}  // namespace weft::kernels::simt::ptx
