// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "emulator/source/kernel_api.h"

// The emulated side of kernels/cuda/ptx_hopper.cuh and ptx_wgmma.cuh: called by the device headers.

namespace emulator::source {

// mbarrier.cpp
void mbarrier_init(void* barrier, int arrivals, SourceLine where);
void mbarrier_init_fence(SourceLine where);
/// Arrives at the barrier of block `rank` of the cluster at the offset of `barrier`; -1: at `barrier` itself.
void mbarrier_arrive(void* barrier, int rank, int expected_bytes, SourceLine where);
void mbarrier_wait(void* barrier, int parity, SourceLine where);
void fence_proxy_async(SourceLine where);

/// The position of a load or a store: coordinates innermost first, and for im2col the offsets of W and H.
struct BoxRequest {
  int rank;
  int at[5];
  bool im2col;
  int offset[2];
};

// bulk_copy.cpp
/// `blocks`: 0 for the calling block, or the set of blocks of the cluster that get a copy.
void tma_load(void* shared, const void* map, void* barrier, uint16_t blocks, const BoxRequest& request,
              SourceLine where);
void bulk_load(void* shared, const void* global, int bytes, void* barrier, SourceLine where);
void tma_store(const void* map, const void* shared, const BoxRequest& request, SourceLine where);
void tma_store_commit(SourceLine where);
void tma_store_wait(int pending, bool only_reads, SourceLine where);
/// Ends the kernel when `map` is no tensor map.
void check_tensor_map(const void* map, SourceLine where);

// cluster.cpp
int cluster_rank();
void cluster_arrive(SourceLine where);
void cluster_wait(SourceLine where);
void* cluster_map(const void* pointer, int rank, SourceLine where);

// warpgroup.cpp
void named_barrier(int id, int threads, bool waits, SourceLine where);
void set_registers(int registers, bool release, SourceLine where);
bool elect_one(SourceLine where);
void stmatrix(void* row, const uint32_t* registers, bool transposed, SourceLine where);

// wgmma.cpp
uint64_t wgmma_descriptor(const void* tile, int swizzle, uint32_t leading, uint32_t stride, SourceLine where);
void wgmma_fence(SourceLine where);
void wgmma_commit(SourceLine where);
void wgmma_wait(int pending, SourceLine where);

/// wgmma's operands: 16 of depth of two bytes each; 8 of four, whose lower 13 bits are ignored; or 32 of one, a being
/// of this type and b of e4m3.
enum class WgmmaType { bf16, f16, tf32, e4m3, e5m2 };

/// One thread's part of a wgmma.
struct WgmmaCall {
  int n;
  WgmmaType type;
  bool a_along_rows, b_along_rows;
  bool accumulate;
  uint64_t a, b;
  const uint32_t* a_registers;  ///< nullptr: a is a descriptor
  float* d;                     ///< n / 2 sums
};
void wgmma(const WgmmaCall& call, SourceLine where);

}  // namespace emulator::source
