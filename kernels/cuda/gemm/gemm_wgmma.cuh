// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>

#include "kernels/cuda/gemm/gemm_wgmma_epilogue.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/cuda/ptx/ring_position.cuh"

// The GEMM main loop for bf16, f16 and, where allowed, f32 as tf32, on compute capability 9.0: TMA, mbarrier and wgmma.
// Only files named *_sm90.cu may include this.
//
// Grid: persistent; a block (or a cluster of two, one tile above the other) walks over tiles of kM x kN accumulators.
// Warpgroup 0 is the producer: one of its threads issues the loads. Each other warpgroup is a consumer and owns 64 or
// 128 rows of the tile in its registers.
//
//   memory --TMA--> stage 0 | stage 1 | … | stage kStages-1 --wgmma--> registers --stmatrix--> staging --TMA--> memory
//                            each: a's kM x 64, then b's kN x 64, as chunks of 64 x 64 (8 KiB)
//
// Every stage has two mbarriers. `full`: its bytes have arrived. `empty`: every consumer warp, of both blocks in a
// cluster, has read the stage. The producer runs ahead over tiles, so that the loads of the next tile overlap this
// tile's epilogue. In a cluster both blocks need the same b: each loads half of its chunks and multicasts them to both.
// If the number of tile rows is odd, a cluster takes two neighbouring tiles of the last row; these share nothing, so
// each block loads its whole b.
//
// A chunk keeps the operand's layout in memory, 64 lines of 128 bytes under TMA's 128-byte swizzle, and wgmma reads
// either direction: with Along::depth a line is one row (m or n) and k runs along the line; with Along::rows a line is
// one k.
//
//                 wgmma's descriptor: 8 lines to the next 8.  64 rows to the next 64.  16 k further.
//   Along::depth                      1024 bytes (rows).      8 KiB (8 times 1024).    32 bytes.
//   Along::rows                       1024 bytes (depth)      8 KiB (`leading`)        2048 bytes
//
// Cluster split-K (kClusterSplitK): in a small GEMM, tiles of 128 x 128 leave half of the SMs idle, and smaller tiles
// load twice the bytes from L2. So the blocks of a cluster share one 128 x 128 tile: each accumulates its slice of K,
// then neighbours exchange halves of the tile's columns through distributed shared memory and add; in a cluster of four
// the second pair sends its halves to the first pair. The order of additions is fixed, and neither a workspace nor a
// second launch is needed. 1024^3: 128 blocks load 256 KiB each; 256 tiles of 64 x 64, two per SM, load as much each.
//
//   rank 0: columns 0..63     a0 + a1 ---------> (a0 + a1) + (a2 + a3) --> y
//   rank 1: columns 64..127   b1 + b0 ---------> (b1 + b0) + (b3 + b2) --> y
//   ranks 2 and 3: the same for their slices; they send the results to ranks 0 and 1
//
// After a tile's last K step, the producer loads the epilogue's auxiliary operand (residual, or activation's input)
// into one or two more pipeline stages: the operand is there when the accumulators are complete,
// and costs no registers and no shared memory.
//
// A source with `row_sums` (linear_backward_weight) also gets the sum of each of a's rows: the first tile of each tile
// row multiplies a by a matrix of ones.
//
// tf32: a line of 128 bytes is 32 elements and a wgmma takes 8 of them, again 32 bytes; so a chunk is 64 rows of 32 k,
// and the rest is the same. wgmma reads f32 along K only (it transposes two-byte types only): GEMMs with an operand
// along its rows run in gemm_mma.cuh. wgmma truncates the lower 13 bits; so TMA rounds the elements on their way to
// shared memory (tensor_map.cuh), to nearest as gemm_mma.cuh does, but ties to even.
//
// TMA fills elements outside the matrix with zeros, so odd sizes cost nothing extra. TMA needs lines that begin at
// multiples of 16 bytes; other matrices run in gemm_mma.cuh.
//
// Work: 2 kM kN flops and 2 (kM + kN) bytes per k; in a cluster of two each block loads half of b: 85 flops per byte at
// 128 x 256 alone, 128 in a cluster; 51 at 256 x 64 and 64 x 256, 48 at 64 x 192; from L2 mostly (the tile order keeps
// about 2048 x 2048 results in flight); tf32 has twice the bytes, and half the flops in a cycle. Limit: tensor cores;
// hand-written kernels of this kind have been measured at 80 to 85% of an H100's peak, cuBLAS's share.

namespace weft::kernels::cuda {

constexpr int kChunkBytes = 8192, kChunkRows = 64;
/// K elements of one chunk: 128 bytes, one step of the main loop.
template <class T>
inline constexpr int kWgmmaDepth = 128 / static_cast<int>(sizeof(T));
inline int wgmma_depth(DType dtype) { return 128 / static_cast<int>(size_of(dtype)); }

/// kConsumerBands: bands of 64 rows that a consumer owns. kIsPingPong: ping-pong schedule; the two consumers alternate
/// over the block's tiles, so that one multiplies while the other runs its epilogue. kIsClusterSplitK: the
/// blocks of a cluster split the K of one tile.
template <int kRows, int kColumns, int kStageCount, int kBlocks, int kConsumerBands = 1, bool kIsPingPong = false,
          bool kIsClusterSplitK = false>
struct WgmmaTile {
  static constexpr int kM = kRows, kN = kColumns, kStages = kStageCount, kBlocksPerSm = kBlocks,
                       kBands = kConsumerBands;
  static constexpr bool kPingPong = kIsPingPong, kClusterSplitK = kIsClusterSplitK;
  static constexpr int kConsumersOfATile = kM / 64 / kBands, kConsumers = kConsumersOfATile * (kPingPong ? 2 : 1),
                       kThreads = 128 * (1 + kConsumers);
  static_assert(!kPingPong || kConsumersOfATile == 1);
  static_assert(!kClusterSplitK || (kN == 128 && kBands == 1 && !kPingPong));
  static constexpr int kChunksA = kM / kChunkRows, kChunksB = kN / kChunkRows;
  static constexpr int kStageBytes = (kChunksA + kChunksB) * kChunkBytes;
  static constexpr int kStagingBytes = kConsumers * 4 * 2 * kStagingBoxBytes;
  static constexpr int kSharedBytes =
      kStages * kStageBytes + kStagingBytes + 2 * kStages * static_cast<int>(sizeof(ptx::Barrier));
  /// Chunks of y in a tile, and the pipeline stages that a tile of the auxiliary operand occupies. Cluster split-K has
  /// none: its blocks store other columns than they multiply.
  static constexpr int kChunksY = kM / kChunkRows * (kN / 64), kChunksInStage = kChunksA + kChunksB;
  static constexpr int kStagesY = kClusterSplitK ? 0 : (kChunksY + kChunksInStage - 1) / kChunksInStage;
  static_assert(kStagesY <= 2);
  /// Three warpgroups start with 168 registers per thread; the producer releases most of its registers to the consumers
  /// (setmaxnreg).
  static constexpr bool kMovesRegisters = kConsumers == 2;
};

/// The order of tiles: clusters of `cluster` tiles along m; panels of kPanel tiles along m, each walked along n, so
/// that concurrent tiles share lines of a and b in L2. If a cluster has two blocks and the number of tile rows is odd,
/// the last row follows a slice's panels: clusters of two tiles along n.
class WgmmaGrid {
 public:
  WgmmaGrid() = default;
  /// blocks: 1 or 2 tiles per cluster; together: blocks per tile.
  WgmmaGrid(int64_t tiles_m, int64_t tiles_n, int64_t slices, int blocks, int together = 1)
      : cluster(blocks),
        shift_(std::countr_zero(static_cast<unsigned>(blocks * together))),
        count_(static_cast<int>(clusters(tiles_m, tiles_n, blocks) * slices)),
        panels_(static_cast<int>(tiles_m / blocks * tiles_n)),
        last_row_(static_cast<int>(tiles_m - 1)),
        per_slice_(clusters(tiles_m, tiles_n, blocks)),
        per_panel_(kPanelTiles / blocks * tiles_n),
        rows_(kPanelTiles / blocks),
        last_rows_(tiles_m / blocks % (kPanelTiles / blocks)),
        whole_panels_(static_cast<int>(tiles_m / blocks / (kPanelTiles / blocks))) {}

  /// Clusters per slice.
  static int64_t clusters(int64_t tiles_m, int64_t tiles_n, int blocks) {
    return tiles_m / blocks * tiles_n + (tiles_m % blocks) * ((tiles_n + 1) / 2);
  }

  struct Position {
    int m, n, z;  ///< m and n in tiles, z a slice
    bool shares;  ///< whether the blocks of a cluster share b
  };
  __device__ int count() const { return count_; }
  __device__ Position position(int index, int rank) const {
    const int z = per_slice_.split(index);
    if (index >= panels_) return {last_row_, 2 * (index - panels_) + rank, z, false};
    const int panel = per_panel_.split(index);
    const int n = (panel < whole_panels_ ? rows_ : last_rows_).split(index);
    return {(panel * rows_.divisor() + index) * cluster + rank, n, z, cluster > 1};
  }
  __device__ int slice(int index) const { return per_slice_.split(index); }
  /// Clusters that `blocks` blocks make.
  __device__ int clusters(unsigned blocks) const { return static_cast<int>(blocks) >> shift_; }
  /// The K steps of slice z that this block accumulates.
  template <class Tile, class Source>
  __device__ auto range(const Source& source, int z) const {
    auto range = source.range(z);
    if constexpr (Tile::kClusterSplitK) {
      const int share = (range.end - range.begin + blocks() - 1) >> shift_;
      range.begin += ptx::cluster_rank() * share;
      range.end = min(range.end, range.begin + share);
    }
    return range;
  }

  /// Blocks per cluster.
  __device__ int blocks() const { return 1 << shift_; }

  int cluster = 1;  ///< tiles per cluster

 private:
  static constexpr int kPanelTiles = 16;
  int shift_ = 0;  ///< log2 of the blocks per cluster
  int count_ = 0;
  int panels_ = 0, last_row_ = 0;  ///< clusters in a slice's panels; the last row of tiles
  Divider per_slice_, per_panel_;  ///< clusters
  Divider rows_, last_rows_;       ///< clusters along m in a panel, and in a last, shorter panel
  int whole_panels_ = 0;
};

/// A *source* describes the operands: it gives their layout (kAlongA, kAlongB), the steps of kWgmmaDepth<T> k that
/// slice z accumulates, and loads chunks. Its optional members select tiles and epilogues:
///   kTall, kWide, kBroad   tiles of 256 x 64, 64 x 192, 64 x 256.
///   kPingPong              ping-pong tiles.
///   kPlain                 ping-pong and cluster split-K tiles only.
///   kNoMulticast           the blocks of a cluster do not share b.
///   kScattered             a slice may have no K steps; rows of y lie as ScatteredRows says.
///   kChannels              the epilogue may have a norm and batch statistics.
///   kAuxiliary             the producer may load an auxiliary operand for the epilogue.
///   beside(epilogue, thread)   work for the producer warpgroup's idle warps, 96 threads per block
///
/// tile(m, n, z) gives an object that knows one tile:
///   load_a(void* chunk, Barrier*, int i, int step)                    chunk i of a's kM rows.
///   load_b(void* chunk, Barrier*, int i, int step, uint16_t blocks)   chunk i of b's; multicast mask, 0: this block.
/// With Along::depth the chunks are contiguous. One TMA load covers all of a's chunks, or all of b's chunks that this
/// block loads, from chunk i: their maps have boxes of WgmmaBoxRows.
template <class T, class Source>
struct WgmmaGemm {
  Source source;
  WgmmaEpilogue<T, Source::kScattered, Source::kChannels> epilogue;
  WgmmaGrid grid;
};

/// Whether the producer can load an auxiliary operand for this tile. Not with norms and batch statistics: registers
/// would spill.
template <class Tile, class Source>
inline constexpr bool kLoadsAuxiliary = requires {
  requires Source::kAuxiliary;
}
&&!Source::kChannels && Tile::kStagesY > 0;

template <class Tile, class Source, class Epilogue>
__device__ __forceinline__ void produce(const Source& source, const Epilogue& epilogue, const WgmmaGrid& grid,
                                        unsigned char* stages, ptx::Barrier* full, ptx::Barrier* empty) {
  const int rank = grid.cluster > 1 ? ptx::cluster_rank() : 0;
  const int first = grid.clusters(blockIdx.x), stride = grid.clusters(gridDim.x);
  RingPosition<Tile::kStages> at;
  for (int index = first; index < grid.count(); index += stride) {
    const auto position = grid.position(index, rank);
    const auto range = grid.range<Tile>(source, position.z);
    const auto tile = source.tile(position.m * Tile::kM, position.n * Tile::kN, position.z);
    for (int step = range.begin; step < range.end; ++step, at.advance()) {
      ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
      unsigned char* const a = stages + at.stage * Tile::kStageBytes;
      unsigned char* const b = a + Tile::kChunksA * kChunkBytes;
      ptx::Barrier* const barrier = &full[at.stage];
      ptx::mbarrier_arrive_expect_tx(barrier, Tile::kStageBytes);
      for (int i = 0; i < Tile::kChunksA; i += Source::kAlongA == ptx::Along::depth ? Tile::kChunksA : 1)
        tile.load_a(a + i * kChunkBytes, barrier, i, step);
      constexpr bool kWholeB = Source::kAlongB == ptx::Along::depth;
      constexpr int kHalf = Tile::kChunksB / 2;
      const auto load_b = [&](int begin, int count, uint16_t blocks) {
        for (int i = begin; i < begin + count; i += kWholeB ? count : 1)
          tile.load_b(b + i * kChunkBytes, barrier, i, step, blocks);
      };
      if constexpr (Tile::kChunksB % 2 != 0 || requires { Source::kNoMulticast; }) {
        load_b(0, Tile::kChunksB, 0);
      } else if (position.shares) {
        load_b(rank * kHalf, kHalf, 3);
      } else {
        load_b(0, Tile::kChunksB, 0);
        if (kWholeB && grid.cluster > 1) load_b(kHalf, kHalf, 0);  // in a cluster a box is half of b
      }
    }
    if constexpr (kLoadsAuxiliary<Tile, Source>) {
      if (!epilogue.loads_auxiliary) continue;
      for (int first_chunk = 0; first_chunk < Tile::kChunksY; first_chunk += Tile::kChunksInStage, at.advance()) {
        const int count = min(Tile::kChunksInStage, Tile::kChunksY - first_chunk);
        ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
        ptx::Barrier* const barrier = &full[at.stage];
        ptx::mbarrier_arrive_expect_tx(barrier, count * kChunkBytes);
        for (int i = 0; i < count; ++i) {
          constexpr int kAcross = Tile::kN / 64;
          const int chunk = first_chunk + i;
          ptx::tma_load(stages + at.stage * Tile::kStageBytes + i * kChunkBytes, epilogue.auxiliary_map, barrier,
                        position.n * Tile::kN + chunk % kAcross * 64,
                        position.m * Tile::kM + chunk / kAcross * kChunkRows, position.z);
        }
      }
    }
  }
}

/// The sums of a's rows are a matrix product with 8 equal columns of ones. Its 8 lines of 16 bytes serve any K: the
/// descriptor's strides are 0.
constexpr int kOnesBytes = 128;
template <class Source>
inline constexpr bool kSumsRows = requires(Source source) {
  source.row_sums;
};
template <class Tile, class Source>
inline constexpr int kSharedBytes = Tile::kSharedBytes + (kSumsRows<Source> ? kOnesBytes : 0);

/// Stores a warp's 16 row sums, in wgmma's accumulator layout, as columns first_m … of row z of a matrix [slices, m].
template <class T>
__device__ __forceinline__ void store_row_sums(const Epilogue<T>& to, int first_m, int m, int z, int lane,
                                               const float (&sums)[4]) {
  if (lane % 4 != 0) return;
  WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = first_m + lane / 4 + 8 * half;
    const float sum[1] = {sums[2 * half]};
    to.template store<false>(int64_t{z} * m + row, 0, m - row, sum);
  }
}

/// Reduces a warp's 16 x 128 accumulators over the 2 or 4 blocks of a cluster. `own` becomes half `rank mod 2` of the
/// columns, complete in ranks 0 and 1. `first` and `second`: 4 KiB each of this warp's shared memory; `second` may be a
/// stage. All warps of the cluster synchronise here; warps without accumulators call join_cluster_barriers.
__device__ __forceinline__ void join_sums(const float (&sums)[64], float (&own)[32], unsigned char* first,
                                          unsigned char* second, int blocks, int lane) {
  const int rank = ptx::cluster_rank();
  const bool right = rank % 2 != 0;
  const auto give = [&](unsigned char* box, int to, auto&& value) {
    float* const there = ptx::cluster_map(reinterpret_cast<float*>(box), to) + lane * 4;
    WEFT_UNROLL
    for (int i = 0; i < 32; i += 4) {
      Vec<float, 4> four;
      WEFT_UNROLL
      for (int e = 0; e < 4; ++e) four[e] = value(i + e);
      four.store(there + i * 32);
    }
  };
  const auto add = [&](const unsigned char* box) {
    WEFT_UNROLL
    for (int i = 0; i < 32; i += 4) {
      const auto four = Vec<float, 4>::load(reinterpret_cast<const float*>(box) + i * 32 + lane * 4);
      WEFT_UNROLL
      for (int e = 0; e < 4; ++e) own[i + e] += four[e];
    }
  };
  WEFT_UNROLL
  for (int i = 0; i < 32; ++i) own[i] = right ? sums[32 + i] : sums[i];
  give(first, rank ^ 1, [&](int i) { return right ? sums[i] : sums[32 + i]; });
  ptx::cluster_sync();
  add(first);
  if (blocks < 4) return;
  if (rank >= 2) give(second, rank - 2, [&](int i) { return own[i]; });
  ptx::cluster_sync();
  if (rank < 2) add(second);
}
__device__ __forceinline__ void join_cluster_barriers(int blocks) {
  ptx::cluster_sync();
  if (blocks == 4) ptx::cluster_sync();
}

template <class Tile, class T, class Source>
__device__ __forceinline__ void consume(const Source& source,
                                        const WgmmaEpilogue<T, Source::kScattered, Source::kChannels>& epilogue,
                                        const WgmmaGrid& grid, unsigned char* stages, unsigned char* staging,
                                        ptx::Barrier* full, ptx::Barrier* empty, int consumer) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int rank = grid.cluster > 1 ? ptx::cluster_rank() : 0;
  const int first = grid.clusters(blockIdx.x), stride = grid.clusters(gridDim.x);
  const auto release = [&](int stage) {
    __syncwarp();
    if (grid.cluster > 1) {
      if (lane < 2) ptx::mbarrier_arrive_cluster(&empty[stage], lane);
    } else if (lane == 0) {
      ptx::mbarrier_arrive(&empty[stage]);
    }
  };
  EpilogueWarp store(staging + (consumer * 4 + warp) * 2 * kStagingBoxBytes, lane, warp, consumer);
  static_assert(!kSumsRows<Source> || Tile::kBands == 1);
  [[maybe_unused]] float row_sums[4];
  [[maybe_unused]] const uint64_t ones =
      ptx::wgmma_descriptor(stages + Tile::kSharedBytes, Swizzle::none, 0, 0);  // after all other shared memory
  RingPosition<Tile::kStages> at;
  const int band = Tile::kPingPong ? 0 : consumer * Tile::kBands;  // the consumer's first band in the tile
  const auto leave_to_other = [&](int index) {
    if (index >= grid.count()) return;
    const auto range = source.range(grid.slice(index));
    at.advance(range.end - range.begin +
               (kLoadsAuxiliary<Tile, Source> && epilogue.loads_auxiliary ? Tile::kStagesY : 0));
  };
  // Ping-pong: the main loops of the two consumers never overlap. Otherwise a consumer could wait for a stage two
  // phases ahead. Its parity equals the present phase's, so the wait would end at once. Barrier ids are
  // literals: see EpilogueWarp.
  const auto wait_for_other_consumer = [&] {
    if (consumer == 0)
      ptx::named_barrier_sync(3, 256);
    else
      ptx::named_barrier_sync(4, 256);
  };
  const auto give_turn = [&](int next) {
    if (next >= grid.count()) return;
    if (consumer == 0)
      ptx::named_barrier_arrive(4, 256);
    else
      ptx::named_barrier_arrive(3, 256);
  };
  int index = first;
  if (Tile::kPingPong && consumer == 1) {
    give_turn(index);
    leave_to_other(index);
    index += stride;
  }
  for (; index < grid.count(); index += stride) {
    const auto position = grid.position(index, rank);
    const auto range = grid.range<Tile>(source, position.z);
    const int first_m = position.m * Tile::kM + band * 64 + warp * 16, first_n = position.n * Tile::kN;
    float sums[Tile::kBands][Tile::kN / 2];
    if constexpr (Source::kScattered) {
      WEFT_UNROLL
      for (auto& rows : sums) {
        WEFT_UNROLL_BY(Tile::kN / 2)
        for (float& sum : rows) sum = 0;
      }
    }
    WEFT_UNROLL
    for (int i = 0; i < Tile::kBands; ++i)
      epilogue.template prefetch<Tile::kN>(lane, first_m + i * 64, first_n, position.z);
    int previous = -1;
    if constexpr (Tile::kPingPong) wait_for_other_consumer();
    const auto multiply = [&]<bool kWithOnes>() {
      for (int step = range.begin; step < range.end; ++step, at.advance()) {
        ptx::mbarrier_wait(&full[at.stage], at.parity);
        const unsigned char* const stage = stages + __shfl_sync(0xffffffffu, at.stage, 0) * Tile::kStageBytes;
        const uint64_t a = ptx::wgmma_descriptor(stage + band * kChunkBytes, Swizzle::bytes128, kChunkBytes, 1024);
        const uint64_t b =
            ptx::wgmma_descriptor(stage + Tile::kChunksA * kChunkBytes, Swizzle::bytes128, kChunkBytes, 1024);
        // Offsets of the next 16 k (tf32: 8) and of the next chunk, in the descriptor's units of 16 bytes.
        constexpr int kFurtherA = (Source::kAlongA == ptx::Along::depth ? 32 : 2048) / 16;
        constexpr int kFurtherB = (Source::kAlongB == ptx::Along::depth ? 32 : 2048) / 16;
        constexpr int kBandBelow = kChunkBytes / 16;
        ptx::wgmma_fence();
        WEFT_UNROLL
        for (int k = 0; k < 4; ++k) WEFT_UNROLL
        for (int i = 0; i < Tile::kBands; ++i)
          ptx::wgmma<T, Tile::kN, Source::kAlongA, Source::kAlongB>(sums[i], a + k * kFurtherA + i * kBandBelow,
                                                                    b + k * kFurtherB,
                                                                    Source::kScattered || step > range.begin || k > 0);
        if constexpr (kWithOnes) {
          WEFT_UNROLL
          for (int k = 0; k < 4; ++k)
            ptx::wgmma<T, 8, Source::kAlongA>(row_sums, a + k * kFurtherA, ones, step > range.begin || k > 0);
        }
        ptx::wgmma_commit();
        if (previous >= 0) {
          ptx::wgmma_wait<1>();
          release(previous);
        }
        previous = at.stage;
      }
    };
    if constexpr (kSumsRows<Source>) {  // two loops, each with its wait: no branch while wgmma owns the registers
      if (__shfl_sync(0xffffffffu, position.n, 0) == 0) {
        multiply.template operator()<true>();
        ptx::wgmma_wait<0>();
      } else {
        multiply.template operator()<false>();
        ptx::wgmma_wait<0>();
      }
    } else {
      multiply.template operator()<false>();
    }
    if constexpr (Tile::kPingPong) {
      if constexpr (kLoadsAuxiliary<Tile, Source>) {  // else the other's wait for this stage's next phase ends at once
        static_assert(Tile::kStagesY == 1);
        if (epilogue.loads_auxiliary) ptx::mbarrier_wait(&full[at.stage], at.parity);
      }
      give_turn(index + stride);
    }
    const int own_n = first_n + (Tile::kClusterSplitK ? ptx::cluster_rank() % 2 * 64 : 0);
    const auto columns = epilogue.columns(lane, own_n);
    ptx::wgmma_wait<0>();
    if (!Source::kScattered || previous >= 0) release(previous);
    if constexpr (kSumsRows<Source>) {
      if (position.n == 0) store_row_sums(source.row_sums, first_m, source.m, position.z, lane, row_sums);
    }
    constexpr bool kDerives = requires { Source::kDerives; }
    &&!kSumsRows<Source>;  // registers are scarce there
    if constexpr (Tile::kClusterSplitK) {
      float own[1][32];
      join_sums(sums[0], own[0], store.boxes(), stages + (store.boxes() - staging), grid.blocks(), lane);
      if (ptx::cluster_rank() < 2) epilogue.template store<kDerives>(store, first_m, own_n, position.z, columns, own);
    } else if constexpr (kLoadsAuxiliary<Tile, Source>) {
      if (epilogue.loads_auxiliary) {
        int first_stage = at.stage, last_stage = at.stage;
        RingPosition<Tile::kStages> auxiliary = at;
        WEFT_UNROLL
        for (int i = 0; i < Tile::kStagesY; ++i, auxiliary.advance()) {
          last_stage = auxiliary.stage;
          ptx::mbarrier_wait(&full[auxiliary.stage], auxiliary.parity);
        }
        const AuxiliaryChunks chunks{stages + first_stage * Tile::kStageBytes, stages + last_stage * Tile::kStageBytes,
                                     Tile::kChunksInStage, band * (Tile::kN / 64)};
        epilogue.template apply_auxiliary<kDerives, Tile::kPingPong>(store, first_n, columns, sums, chunks, [&] {
          ptx::fence_proxy_async();  // orders the threads' reads of a stage before TMA's next write
          WEFT_UNROLL
          for (int i = 0; i < Tile::kStagesY; ++i, at.advance()) release(at.stage);
        });
      }
      epilogue.template store<kDerives>(store, first_m, first_n, position.z, columns, sums, epilogue.loads_auxiliary);
    } else {
      epilogue.template store<kDerives>(store, first_m, first_n, position.z, columns, sums);
    }
    if constexpr (Tile::kPingPong) {
      index += stride;
      leave_to_other(index);
    }
  }
  store.finish();
}

template <class Tile, class T, class Source>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm)
    gemm_wgmma_kernel(const __grid_constant__ WgmmaGemm<T, Source> gemm) {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  unsigned char* const staging = shared + Tile::kStages * Tile::kStageBytes;
  auto* const full = reinterpret_cast<ptx::Barrier*>(staging + Tile::kStagingBytes);
  ptx::Barrier* const empty = full + Tile::kStages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Tile::kStages; ++i) {
      ptx::mbarrier_init(&full[i], 1);
      ptx::mbarrier_init(&empty[i], Tile::kConsumersOfATile * 4 * gemm.grid.cluster);
    }
    ptx::mbarrier_init_fence();
    gemm.source.prefetch();
  }
  if constexpr (kSumsRows<Source>) {
    static_assert(Tile::kThreads * sizeof(T) >= kOnesBytes);
    if (threadIdx.x * sizeof(T) < kOnesBytes)
      reinterpret_cast<T*>(shared + Tile::kSharedBytes)[threadIdx.x] = to<T>(1.0f);
    ptx::fence_proxy_async();
  }
  if (Tile::kClusterSplitK || gemm.grid.cluster > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
  ptx::wait_for_previous_kernel();
  // The shuffle tells the compiler that a warp's lanes agree: stages and descriptors stay in uniform registers.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0), warpgroup = warp / 4;
  if (warpgroup == 0) {
    if constexpr (Tile::kMovesRegisters) ptx::release_registers<40>();
    if (warp == 0) {
      if (ptx::elect_one()) {
        produce<Tile>(gemm.source, gemm.epilogue, gemm.grid, shared, full, empty);
        ptx::allow_next_kernel();
      }
    } else if constexpr (requires { gemm.source.beside(gemm.epilogue, 0); }) {
      gemm.source.beside(gemm.epilogue, static_cast<int>(threadIdx.x) - 32);
    }
    __syncwarp();
    if constexpr (Tile::kClusterSplitK) join_cluster_barriers(gemm.grid.blocks());
  } else {
    if constexpr (Tile::kMovesRegisters) ptx::acquire_registers<232>();
    consume<Tile>(gemm.source, gemm.epilogue, gemm.grid, shared, staging, full, empty, warpgroup - 1);
  }
  // A block's shared memory must live until its neighbour's multicasts and arrivals are complete.
  if (gemm.grid.cluster > 1) ptx::cluster_sync();
}

}  // namespace weft::kernels::cuda
