// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/half.h"
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// The bug planted in hopper_gemm().
enum class HopperBug {
  none,
  missing_wait,
  wrong_phase,
  wrong_swizzle,
  missing_proxy_fence,
  missing_proxy_fence_after_reads,
  result_before_wait,
  tile_overwritten_early,
  too_few_bytes,
  too_many_arrivals,
  too_few_arrivals,
  misaligned_tile,
  no_wgmma_fence,
  barriers_not_published,
  store_source_overwritten,
  no_wait_for_the_store,
  no_cluster_sync,
  exits_too_early,
  remote_read_too_early,
};

/// c[m,n] = a[m,k] b[n,k]^T; m, n and k any positive numbers, k and n multiples of 8. Warp-specialised: a producer
/// loads tiles by TMA, b's for both blocks of a cluster at once; two warpgroups multiply; the result leaves by TMA.
void hopper_gemm(const Queue& queue, float* c, const bf16* a, const bf16* b, int m, int n, int k, HopperBug bug);

/// sums[block] over `values` of all blocks of its cluster (x and y wide), each read through distributed shared memory,
/// and ranks[block].
void cluster_sums(const Queue& queue, int* sums, int* ranks, const int* values, int blocks_x, int blocks_y, int x,
                  int y, HopperBug bug);

}  // namespace weft::kernels::WEFT_DEVICE
