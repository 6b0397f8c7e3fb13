// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/attention/attention_mma.cuh"
#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/launch_overlapped.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/cuda/ptx/ring_position.cuh"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_variant.h"
#include "kernels/runtime/runtime.h"

// Shared by the attention kernels for compute capability 9.0 (bf16, f16). Only files named *_sm90.cu may include this.
//
// A tile is some rows of a head in shared memory, in chunks of 64 channels: a chunk's lines are its rows, 128 bytes
// under TMA's 128-byte swizzle. TMA loads directly from the strided views, one box [64 channels, 1 head, rows, 1 batch
// element] per chunk. It fills channels and rows outside the tensor with zeros. wgmma reads a tile in both directions:
//
//   K = channels (q k^T)   Along::depth   8 lines are 1024 bytes   16 channels further: 32 bytes
//   K = rows     (p v)     Along::rows    8 lines are 1024 bytes   16 rows further: 2048 bytes, the next 64
//                                                                  channels: a chunk (`leading`)
//
// Blocks are persistent and have three warpgroups: the first is the producer; the two consumers own 64 rows each of a
// tile of 128. Owned rows are double-buffered, so that the next tile's loads overlap this tile's epilogue.

namespace weft::kernels::cuda {

constexpr int kAttentionRows = 128, kAttentionConsumers = 2, kAttentionThreads = 384, kAttentionWarps = 8;
constexpr int kAttentionChunk = 64, kAttentionLine = 128;  ///< channels per chunk; bytes per line
constexpr int kAttentionProducerRegisters = 24, kAttentionConsumerRegisters = 240;

// Named barriers; 0 is __syncthreads.
constexpr int kConsumersBarrier = 1, kWarpgroupBarrier = 2 /* and 3 */, kPingPongBarrier = 4 /* and 5 */;

/// The barriers of a ring's stages. `full`: the stage's bytes have arrived. `empty`: each of kWarps consumer warps has
/// read the stage.
template <int kStages, int kWarps = kAttentionWarps>
struct AttentionRing {
  ptx::Barrier full[kStages], empty[kStages];

  __device__ void init() {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], kWarps);
    }
  }
  /// Called by the producer. Waits until the stage is empty and sets the number of bytes to expect.
  __device__ __forceinline__ ptx::Barrier* begin(const RingPosition<kStages>& at, int bytes) {
    ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(&full[at.stage], bytes);
    return &full[at.stage];
  }
  __device__ __forceinline__ void wait(const RingPosition<kStages>& at) {
    ptx::mbarrier_wait(&full[at.stage], at.parity);
  }
  /// Called by all lanes of a consumer warp that has read the stage.
  __device__ __forceinline__ void release(int stage, int lane) {
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
  }
};

/// The tiles of 128 rows of all heads, in scheduling order. If tiles differ in work, blocks draw them from an atomic
/// counter, the longest of a group of heads first. So all blocks end at about the same time. No result depends on
/// which block computes a tile.
struct AttentionTiles {
  int rows;         ///< rows per head
  int count, H;     ///< tiles in total, heads per batch element
  int group;        ///< heads scheduled round-robin: as many as fit their streamed rows in L2
  bool last_first;  ///< whether a head's last rows need the most work
  int* drawn;       ///< counter of tiles drawn after each block's first; nullptr: static round-robin

  __device__ AttentionPosition position(int index) const {
    const int per_head = (rows + kAttentionRows - 1) / kAttentionRows, of_group = per_head * group;
    const int first_head = index / of_group * group, heads = min(group, count / per_head - first_head);
    const int within = index % of_group, head = first_head + within % heads;
    return AttentionPosition(rows, kAttentionRows, H, last_first, head * per_head + within / heads);
  }
  /// Called by the producer. Returns the next tile; a value >= count means that none is left.
  __device__ int after(int index) const {
    return static_cast<int>(gridDim.x) + (drawn != nullptr ? atomicAdd(drawn, 1) : index);
  }
};

/// The stages of owned tiles. Each stage also holds its tile's index, since only the producer knows the order.
template <int kStages>
struct OwnedRing : AttentionRing<kStages> {
  int tile[kStages];

  /// Like AttentionRing::begin; bytes = 0 signals that no more tiles follow.
  __device__ __forceinline__ ptx::Barrier* begin(const RingPosition<kStages>& at, int bytes, int index) {
    ptx::mbarrier_wait(&this->empty[at.stage], at.parity ^ 1);
    tile[at.stage] = index;
    ptx::mbarrier_arrive_expect_tx(&this->full[at.stage], bytes);
    return &this->full[at.stage];
  }
  __device__ __forceinline__ int wait(const RingPosition<kStages>& at) {
    ptx::mbarrier_wait(&this->full[at.stage], at.parity);
    return tile[at.stage];
  }
};

/// Tiles of kRows rows and kChannels channels.
template <int kRowCount, int kChannelCount>
struct WgmmaTileOf {
  static constexpr int kRows = kRowCount, kChannels = kChannelCount, kChunks = kChannels / kAttentionChunk;
  static constexpr int kChunkBytes = kRows * kAttentionLine, kBytes = kChunks * kChunkBytes;

  static __device__ __forceinline__ void load(unsigned char* tile, const TensorMap& map, ptx::Barrier* full, int first,
                                              int b, int h) {
    WEFT_UNROLL
    for (int c = 0; c < kChunks; ++c)
      ptx::tma_load(tile + c * kChunkBytes, map, full, c * kAttentionChunk, h, first, b);
  }
  static __device__ __forceinline__ uint64_t descriptor(const unsigned char* tile) {
    return ptx::wgmma_descriptor(tile, Swizzle::bytes128, kChunkBytes, 1024);
  }
  /// The offset in a tile's descriptor of channels 16 k …, in units of 16 bytes.
  static constexpr uint64_t further(int k) { return (k / 4 * kChunkBytes + k % 4 * 32) / 16; }

  /// Sets rows from `begin` on to zero, since keys beyond a length may hold anything. Called by both consumers; the
  /// zeros are visible to both on return.
  static __device__ __forceinline__ void clear_from(unsigned char* tile, int begin) {
    constexpr int kRuns = kAttentionLine / 16;
    const int thread = static_cast<int>(threadIdx.x) - 128;
    for (int i = begin * kRuns + thread; i < kRows * kRuns; i += 2 * 128) {
      WEFT_UNROLL
      for (int c = 0; c < kChunks; ++c) ptx::st16(tile + c * kChunkBytes + i * 16, {});
    }
    ptx::fence_proxy_async();
    ptx::named_barrier_sync(kConsumersBarrier, 2 * 128);
  }
};

/// A consumer's 64 rows of an owned tile.
template <int kChannels>
using OwnedTile = WgmmaTileOf<64, kChannels>;

/// Issues sums = a b^T with K = channels: the consumer's 64 rows by kRows rows. Does not commit.
template <class T, class Streamed>
__device__ __forceinline__ void issue_scores(float (&sums)[Streamed::kRows / 2], uint64_t own, uint64_t streamed) {
  WEFT_UNROLL
  for (int k = 0; k < Streamed::kChannels / 16; ++k)
    ptx::wgmma<T, Streamed::kRows>(sums, own + OwnedTile<Streamed::kChannels>::further(k),
                                   streamed + Streamed::further(k), k > 0);
}

/// Issues sums += a b with K = streamed rows, a from registers. Does not commit.
template <class T, class Streamed>
__device__ __forceinline__ void issue_weighted(float (&sums)[Streamed::kChannels / 2],
                                               const uint32_t (&a)[Streamed::kRows / 16][4], uint64_t streamed) {
  WEFT_UNROLL
  for (int k = 0; k < Streamed::kRows / 16; ++k)
    ptx::wgmma<T, Streamed::kChannels, ptx::Along::rows>(sums, a[k], streamed + k * (2048 / 16));
}

/// A dropout mask of a lane's kCount weights, one bit each. It is drawn while the GEMMs are in flight, before the
/// weights exist.
template <bool with_dropout, int kCount>
struct KeptWeights {
  uint32_t bits[kCount / 32];

  /// row, column: position of the first weight; transposed: rows are keys (attention_kept).
  template <bool transposed>
  __device__ __forceinline__ void draw(const AttentionDropout& dropout, float probability, int row, int column,
                                       int lane) {
    if constexpr (!with_dropout) return;
    WEFT_UNROLL
    for (int w = 0; w < kCount / 32; ++w) {
      bits[w] = 0;
      WEFT_UNROLL_BY(2)  // full unrolling would spill
      for (int j = 0; j < 8; ++j) {
        bool kept[4];
        attention_kept<transposed>(kept, dropout, probability, row, column + w * 64 + j * 8, lane);
        WEFT_UNROLL
        for (int e = 0; e < 4; ++e) bits[w] |= static_cast<uint32_t>(kept[e]) << (4 * j + e);
      }
    }
  }
  /// `value` where weight j is kept, else 0.
  __device__ __forceinline__ float operator()(int j, float value) const {
    return !with_dropout || (bits[j / 32] >> (j % 32) & 1) != 0 ? value : 0.0f;
  }
};

/// Packs accumulators as the left operand of the next GEMM; weights that `kept` drops become zero.
template <class T, bool with_dropout, int kCount>
__device__ __forceinline__ void pack_left(uint32_t (&a)[kCount / 8][4], const float (&sums)[kCount],
                                          const KeptWeights<with_dropout, kCount>& kept) {
  WEFT_UNROLL
  for (int k = 0; k < kCount / 8; ++k) WEFT_UNROLL
  for (int r = 0; r < 4; ++r) {
    const int j = 8 * k + 2 * r;
    a[k][r] = ptx::pack<T>(kept(j, sums[j]), kept(j + 1, sums[j + 1]));
  }
}
/// As above, without dropout.
template <class T, int kCount>
__device__ __forceinline__ void pack_left(uint32_t (&a)[kCount / 8][4], const float (&sums)[kCount]) {
  pack_left<T>(a, sums, KeptWeights<false, kCount>{});
}

/// Sets scores that a warp's 16 queries must not see to -infinity. key, query: the first of each; lane l holds query l
/// / 4 and the query 8 below. Returns false, uniformly over the warp, if the queries see all keys.
template <int kCount>
__device__ __forceinline__ bool mask_scores(float (&s)[kCount], const AttentionProblem<float>& problem, int b, int key,
                                            int keys, int query, int lane) {
  constexpr int kKeys = 2 * kCount;
  const auto all_see = [&](int begin, int count) {
    return begin + count <= keys && problem.key_mask == nullptr && problem.all_see(query, 16, begin, count);
  };
  if (all_see(key, kKeys)) return false;
  const int column = lane % 4 * 2;  // this lane's first column of 8
  WEFT_UNROLL
  for (int w = 0; w < kKeys / 32; ++w) {
    if (all_see(key + w * 32, 32)) continue;
    // One bit per key of 32, at a constant bit position for each weight.
    const unsigned there = __ballot_sync(0xffffffffu, problem.has_key(b, key + w * 32 + lane, keys)) >> column;
    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {
      unsigned sees = there;
      if (problem.causal) {
        const int last = query + half * 8 + lane / 4 - (key + w * 32 + column);  // the last one at or before the query
        const int first = last - problem.window + 1;
        sees = last < 0 || first > 31 ? 0 : last < 31 ? sees & ((2u << last) - 1) : sees;
        if (first > 0) sees &= ~0u << (first & 31);
      }
      WEFT_UNROLL
      for (int j = 0; j < 4; ++j) WEFT_UNROLL
      for (int e = 0; e < 2; ++e) {
        float& one = s[16 * w + 4 * j + 2 * half + e];
        one = (sees & (1u << (8 * j + e))) != 0 ? one : -INFINITY;
      }
    }
  }
  return true;
}

/// Stores a warp's 16 rows of accumulators, each times its factor, through the warp's own rows of a consumer's tile, by
/// TMA. No other warp may still use these rows. The store is asynchronous: wait with tma_store_wait_read in the elected
/// lane.
template <class T, int kChannels>
__device__ __forceinline__ void store_rows(const TensorMap& map, unsigned char* own, int warp, int lane, int first,
                                           int end, int b, int h, const float (&sums)[kChannels / 2],
                                           const float (&factor)[2]) {
  using Tile = OwnedTile<kChannels>;
  unsigned char* const rows = own + warp * 16 * kAttentionLine;
  const int line = lane % 16;  // lanes 0..15 address the rows of 8 channels, lanes 16..31 the rows of the next 8
  WEFT_UNROLL
  for (int c = 0; c < Tile::kChunks; ++c) WEFT_UNROLL
  for (int j = 0; j < 8; j += 2) {
    const float* const s = sums + c * 32 + 4 * j;
    const uint32_t squares[4] = {
        ptx::pack<T>(s[0] * factor[0], s[1] * factor[0]), ptx::pack<T>(s[2] * factor[1], s[3] * factor[1]),
        ptx::pack<T>(s[4] * factor[0], s[5] * factor[0]), ptx::pack<T>(s[6] * factor[1], s[7] * factor[1])};
    ptx::stmatrix_x4(rows + c * Tile::kChunkBytes + line * kAttentionLine + ((j + lane / 16) ^ (line & 7)) * 16,
                     squares);
  }
  ptx::fence_proxy_async();
  __syncwarp();
  if (ptx::elect_one()) {
    const int row = first + warp * 16;
    WEFT_UNROLL
    for (int c = 0; c < Tile::kChunks; ++c)
      if (row < end) ptx::tma_store(map, rows + c * Tile::kChunkBytes, c * kAttentionChunk, h, row, b);
    ptx::tma_store_commit();
  }
}

/// Whether TMA can read and write the view's rows.
inline bool fits_attention_wgmma(const View& view) {
  const auto apart = [&](int d) { return view.sizes[d] == 1 || view.strides[d] > 0; };
  return !view || (view.numel() > 0 && fits_attention_mma(view) && apart(0) && apart(1) && apart(2));
}

/// Boxes of `rows` rows.
inline TensorMap attention_map(const View& view, int rows) {
  const auto pitch = [&](int d) { return view.sizes[d] == 1 ? 2 * view.sizes[3] : 2 * view.strides[d]; };
  return tiled_map("attention", {view.data,
                                 view.dtype,
                                 4,
                                 {view.sizes[3], view.sizes[2], view.sizes[1], view.sizes[0]},
                                 {pitch(2), pitch(1), pitch(0)},
                                 {kAttentionChunk, 1, rows, 1},
                                 Swizzle::bytes128});
}

constexpr int64_t kMostAttentionTiles = int64_t{1} << 30;

/// Tiles of kAttentionRows rows of `heads` heads.
inline int64_t attention_tiles(int64_t heads, int64_t rows) {
  return (rows + kAttentionRows - 1) / kAttentionRows * heads;
}

/// The schedule of tiles of queries, which stream a head's keys, or of keys, which stream the queries of a group of
/// heads. `drawn` holds one int.
inline AttentionTiles attention_schedule(const Queue& queue, const AttentionShape& shape,
                                         const AttentionProblem<float>& problem, bool of_keys, const Workspace& drawn) {
  constexpr int64_t kShareOfL2 = 24 << 20;  // half of an H100's 50 MB
  const int64_t rows = of_keys ? shape.M : shape.N, per_entry = of_keys ? shape.G : shape.H,
                heads = shape.B * per_entry;
  AttentionTiles tiles{static_cast<int>(rows),
                       static_cast<int>(attention_tiles(heads, rows)),
                       static_cast<int>(per_entry),
                       1,
                       false,
                       nullptr};
  if (problem.causal) {
    const int64_t streamed = of_keys ? shape.N * shape.group() : std::max<int64_t>(shape.M / shape.group(), 1);
    tiles.group = static_cast<int>(std::clamp<int64_t>(kShareOfL2 / (4 * streamed * shape.D), 1, heads));
    tiles.last_first = !of_keys;
  }
  if (problem.causal || problem.key_lengths != nullptr) {
    tiles.drawn = drawn.as<int>();
    runtime().fill_bytes(queue.device.index, tiles.drawn, 0, sizeof(int), queue.stream);
  }
  return tiles;
}

/// Starts a kernel whose blocks walk over `tiles` tiles.
template <class Kernel, class Call>
void launch_attention_wgmma(const Queue& queue, const char* name, const AttentionTiles& tiles, size_t shared,
                            Kernel kernel, const Call& call) {
  const int resident = std::max(1, multiprocessors(queue));
  note_kernel_variant("sm90");
  launch_overlapped(queue, name, dim3(static_cast<unsigned>(std::min(tiles.count, resident))), dim3(kAttentionThreads),
                    shared, dim3(1), kernel, call);
}

}  // namespace weft::kernels::cuda
