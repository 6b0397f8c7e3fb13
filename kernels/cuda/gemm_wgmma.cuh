// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>

#include "kernels/cuda/gemm_wgmma_epilogue.cuh"
#include "kernels/cuda/ptx_wgmma.cuh"
#include "kernels/cuda/ring_position.cuh"

// The GEMM main loop for bf16, f16 and, where allowed, f32 as tf32, on compute capability 9.0: TMA, mbarrier and wgmma.
// Only files named *_sm90.cu may include this.
//
// Grid: persistent; a block (or a cluster of two, one tile above the other) walks over tiles of kM x kN sums. Warpgroup
// 0 is the producer: one of its threads loads. Each other warpgroup, a consumer, owns 64 or 128 rows of the tile in its
// registers.
//
//   memory --TMA--> stage 0 | stage 1 | … | stage kStages-1 --wgmma--> registers --stmatrix--> staging --TMA--> memory
//                            each: a's kM x 64, then b's kN x 64, as chunks of 64 x 64 (8 KiB)
//
// Every stage has two barriers. `full`: its bytes have landed. `empty`: every consumer warp, of both blocks in a
// cluster, has read it. The producer runs ahead over tiles, so that loads of the next tile overlap this one's epilogue.
// In a cluster both blocks need the same b: each loads half of its chunks and multicasts them to both. Of an odd number
// of rows of tiles, clusters take the last row by two neighbours, which share nothing: each loads all of its own.
//
// A chunk keeps its operand as memory has it, 64 lines of 128 bytes under TMA's 128-byte swizzle, and wgmma reads
// either direction: with Along::depth a line is one row (m or n) and depth runs along it; with Along::rows a line is
// one k.
//
//                 wgmma's descriptor: 8 lines to the next 8   64 rows to the next 64   16 k further
//   Along::depth                      1024 bytes (rows)       8 KiB (8 times 1024)     32 bytes
//   Along::rows                       1024 bytes (depth)      8 KiB (`leading`)        2048 bytes
//
// Of a small product tiles of 128 x 128 leave half of the chip without work, and smaller ones ask L2 for twice the
// bytes. So the blocks of a cluster take one such tile together (kJoins): each sums its part of the depth, then
// neighbours exchange halves of the tile's columns through distributed shared memory and add; of four blocks the second
// pair hands its halves to the first. Always in the same order, without a workspace or a second launch. 1024^3: 128
// blocks load 256 KiB each; the 256 tiles of 64 x 64 load as much each, two on a multiprocessor.
//
//   rank 0: columns 0..63     a0 + a1 ---------> (a0 + a1) + (a2 + a3) --> y
//   rank 1: columns 64..127   b1 + b0 ---------> (b1 + b0) + (b3 + b2) --> y
//   ranks 2 and 3: the same of their parts, which they hand to ranks 0 and 1
//
// What the epilogue reads besides (a residual, or what a derivative was taken of) the producer brings behind a tile's
// last step, as one or two stages more: it is there when the sums are, and costs no registers and no shared memory.
//
// A source with `row_sums` (linear_backward_weight) also wants the sum of each of a's rows: in the first tile of its
// row of tiles, a product with ones.
//
// tf32: a line of 128 bytes is 32 elements and a wgmma takes 8 of them, 32 bytes as ever; so a chunk is 64 rows of 32
// k, and nothing else changes. wgmma reads f32 along the depth only (its transposing is for two bytes): what lies along
// its rows goes to gemm_mma.cuh. It cuts the lower 13 bits off; TMA rounds the elements before, on their way to shared
// memory (tensor_map.cuh), to nearest as gemm_mma.cuh does, but ties to even.
//
// What lies outside of a matrix arrives as zeros, so odd sizes cost nothing extra; TMA wants lines that begin at
// multiples of 16 bytes, and what has none goes to gemm_mma.cuh.
//
// Work: 2 kM kN flops and 2 (kM + kN) bytes per k, of which a cluster of two loads b's half: 85 flops per byte at
// 128 x 256 alone, 128 in a cluster, 51 at 256 x 64 and 64 x 256, 48 at 64 x 192; from L2 mostly (the tile order keeps
// about 2048 x 2048 results in flight); tf32 has twice the bytes, and half the flops in a cycle. Limit: tensor cores;
// hand-written kernels of this kind have been measured at 80 to 85% of an H100's peak, cuBLAS's share.

namespace weft::kernels::cuda {

constexpr int kChunkBytes = 8192, kChunkRows = 64;
/// Of a chunk along the depth: 128 bytes, a step of the main loop.
template <class T>
inline constexpr int kWgmmaDepth = 128 / static_cast<int>(sizeof(T));
inline int wgmma_depth(DType dtype) { return 128 / static_cast<int>(size_of(dtype)); }

/// kConsumerBands: bands of 64 rows that a consumer owns. kInTurns: two consumers take every other tile of the block's,
/// so that one multiplies while the other stores its sums. kTogether: the blocks of a cluster share a tile's depth, one
/// tile for each cluster.
template <int kRows, int kColumns, int kStageCount, int kBlocks, int kConsumerBands = 1, bool kInTurns = false,
          bool kTogether = false>
struct WgmmaTile {
  static constexpr int kM = kRows, kN = kColumns, kStages = kStageCount, kBlocksPerSm = kBlocks,
                       kBands = kConsumerBands;
  static constexpr bool kAlternates = kInTurns, kJoins = kTogether;
  static constexpr int kConsumersOfATile = kM / 64 / kBands, kConsumers = kConsumersOfATile * (kAlternates ? 2 : 1),
                       kThreads = 128 * (1 + kConsumers);
  static_assert(!kAlternates || kConsumersOfATile == 1);
  static_assert(!kJoins || (kN == 128 && kBands == 1 && !kAlternates));
  static constexpr int kChunksA = kM / kChunkRows, kChunksB = kN / kChunkRows;
  static constexpr int kStageBytes = (kChunksA + kChunksB) * kChunkBytes;
  static constexpr int kStagingBytes = kConsumers * 4 * 2 * kStagingBoxBytes;
  static constexpr int kSharedBytes =
      kStages * kStageBytes + kStagingBytes + 2 * kStages * static_cast<int>(sizeof(ptx::Barrier));
  /// Chunks of y in a tile, and the stages that as many take which the epilogue reads. Joined blocks store other
  /// columns.
  static constexpr int kChunksY = kM / kChunkRows * (kN / 64), kChunksInStage = kChunksA + kChunksB;
  static constexpr int kStagesY = kJoins ? 0 : (kChunksY + kChunksInStage - 1) / kChunksInStage;
  static_assert(kStagesY <= 2);
  /// Three warpgroups begin with 168 registers for each thread; the producer hands most of its share to the consumers.
  static constexpr bool kMovesRegisters = kConsumers == 2;
};

/// The order of tiles: clusters of `cluster` tiles along m; of these, panels of kPanel along m, walked along n, so
/// that the tiles in flight at a time share lines of a and b in L2. After the panels of a slice, of two blocks and an
/// odd number of rows of tiles, the last row: clusters of two tiles along n.
class WgmmaGrid {
 public:
  WgmmaGrid() = default;
  /// blocks: 1 or 2 tiles in a cluster; together: blocks to a tile.
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

  /// Of one slice.
  static int64_t clusters(int64_t tiles_m, int64_t tiles_n, int blocks) {
    return tiles_m / blocks * tiles_n + (tiles_m % blocks) * ((tiles_n + 1) / 2);
  }

  struct Position {
    int m, n, z;  ///< in tiles
    bool shares;  ///< b with the other block of a cluster
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
  /// Of so many blocks.
  __device__ int clusters(unsigned blocks) const { return static_cast<int>(blocks) >> shift_; }
  /// The steps of slice z that this block sums.
  template <class Tile, class Source>
  __device__ auto range(const Source& source, int z) const {
    auto range = source.range(z);
    if constexpr (Tile::kJoins) {
      const int share = (range.end - range.begin + blocks() - 1) >> shift_;
      range.begin += ptx::cluster_rank() * share;
      range.end = min(range.end, range.begin + share);
    }
    return range;
  }

  /// In a cluster.
  __device__ int blocks() const { return 1 << shift_; }

  int cluster = 1;  ///< tiles

 private:
  static constexpr int kPanelTiles = 16;
  int shift_ = 0;  ///< blocks of a cluster, as a power of two
  int count_ = 0;
  int panels_ = 0, last_row_ = 0;  ///< clusters in a slice's panels; the last row of tiles
  Divider per_slice_, per_panel_;  ///< clusters
  Divider rows_, last_rows_;       ///< clusters of a panel along m, and of one that is not whole
  int whole_panels_ = 0;
};

/// A *source* describes the operands: it gives their layout (kAlongA, kAlongB), the steps of kWgmmaDepth<T> k that
/// slice z sums over, and loads chunks. kScattered: a slice may sum over nothing, and rows of y lie as ScatteredRows
/// says. kChannels: the epilogue may have a norm and moments. Only sources with kTall have tiles of 256 rows, only
/// those with kWide 64 x 192, with kBroad 64 x 256, only those with kAlternates tiles in turns; those with kPlain have
/// these and joined ones alone. kAlone: clusters do not share b. kBrings: the epilogue may read what the producer
/// brings. A source with beside(epilogue, thread) has work for the producer's idle warps, 96 threads of each block.
///
/// tile(m, n, z) gives an object that knows one tile:
///   load_a(void* chunk, Barrier*, int i, int step)                    chunk i of a's kM rows
///   load_b(void* chunk, Barrier*, int i, int step, uint16_t blocks)   chunk i of b's; to two blocks, or 0: to this one
/// With Along::depth chunks follow one another as their lines do, so one load brings all of a's chunks, and all of b's
/// from i on that this block loads: the boxes of their maps have WgmmaBoxRows.
template <class T, class Source>
struct WgmmaGemm {
  Source source;
  WgmmaEpilogue<T, Source::kScattered, Source::kChannels> epilogue;
  WgmmaGrid grid;
};

/// Whether tiles of this kind can have stages for the epilogue: with norms and moments besides, registers would spill.
template <class Tile, class Source>
inline constexpr bool kBringsStages = requires {
  requires Source::kBrings;
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
      if constexpr (Tile::kChunksB % 2 != 0 || requires { Source::kAlone; }) {
        load_b(0, Tile::kChunksB, 0);
      } else if (position.shares) {
        load_b(rank * kHalf, kHalf, 3);
      } else {
        load_b(0, Tile::kChunksB, 0);
        if (kWholeB && grid.cluster > 1) load_b(kHalf, kHalf, 0);  // a cluster's boxes are half of b
      }
    }
    if constexpr (kBringsStages<Tile, Source>) {
      if (!epilogue.brings) continue;
      for (int first_chunk = 0; first_chunk < Tile::kChunksY; first_chunk += Tile::kChunksInStage, at.advance()) {
        const int count = min(Tile::kChunksInStage, Tile::kChunksY - first_chunk);
        ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
        ptx::Barrier* const barrier = &full[at.stage];
        ptx::mbarrier_arrive_expect_tx(barrier, count * kChunkBytes);
        for (int i = 0; i < count; ++i) {
          constexpr int kAcross = Tile::kN / 64;
          const int chunk = first_chunk + i;
          ptx::tma_load(stages + at.stage * Tile::kStageBytes + i * kChunkBytes, epilogue.brought_map, barrier,
                        position.n * Tile::kN + chunk % kAcross * 64,
                        position.m * Tile::kM + chunk / kAcross * kChunkRows, position.z);
        }
      }
    }
  }
}

/// The sums of a's rows are a product with a matrix of ones, of 8 columns that are all alike. Its 8 lines of 16 bytes
/// stand for any depth: the descriptor leads back to them.
constexpr int kOnesBytes = 128;
template <class Source>
inline constexpr bool kSumsRows = requires(Source source) {
  source.row_sums;
};
template <class Tile, class Source>
inline constexpr int kSharedBytes = Tile::kSharedBytes + (kSumsRows<Source> ? kOnesBytes : 0);

/// Stores a warp's sums of 16 rows, in the layout of wgmma, as columns first_m … of row z of a matrix [slices, m].
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

/// Adds up what the blocks of a cluster, 2 or 4, have of a warp's 16 x 128 sums: `own` is half `rank mod 2` of the
/// columns, whole in ranks 0 and 1. `first` and `second`: 4 KiB each of this warp, of which the second may be a stage.
/// All warps of the cluster meet in it; those that have no sums meet by meet_joined.
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
__device__ __forceinline__ void meet_joined(int blocks) {
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
      ptx::wgmma_descriptor(stages + Tile::kSharedBytes, Swizzle::none, 0, 0);  // behind all else
  RingPosition<Tile::kStages> at;
  const int band = Tile::kAlternates ? 0 : consumer * Tile::kBands;  // of the tile, the consumer's first
  const auto leave_to_other = [&](int index) {
    if (index >= grid.count()) return;
    const auto range = source.range(grid.slice(index));
    at.advance(range.end - range.begin + (kBringsStages<Tile, Source> && epilogue.brings ? Tile::kStagesY : 0));
  };
  // The main loops of the two take turns: a wait for a stage's next load but one would end at once. Numbers that the
  // compiler sees: see EpilogueWarp.
  const auto wait_for_turn = [&] {
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
  if (Tile::kAlternates && consumer == 1) {
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
    if constexpr (Tile::kAlternates) wait_for_turn();
    const auto multiply = [&]<bool kWithOnes>() {
      for (int step = range.begin; step < range.end; ++step, at.advance()) {
        ptx::mbarrier_wait(&full[at.stage], at.parity);
        const unsigned char* const stage = stages + __shfl_sync(0xffffffffu, at.stage, 0) * Tile::kStageBytes;
        const uint64_t a = ptx::wgmma_descriptor(stage + band * kChunkBytes, Swizzle::bytes128, kChunkBytes, 1024);
        const uint64_t b =
            ptx::wgmma_descriptor(stage + Tile::kChunksA * kChunkBytes, Swizzle::bytes128, kChunkBytes, 1024);
        // 16 k (tf32: 8) further, and a chunk, in the descriptor's units of 16 bytes.
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
    if constexpr (kSumsRows<Source>) {  // two loops, each with its end: wgmma's registers cannot meet a branch
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
    if constexpr (Tile::kAlternates) {
      if constexpr (kBringsStages<Tile, Source>) {  // or the other's wait for this stage's next load would end at once
        static_assert(Tile::kStagesY == 1);
        if (epilogue.brings) ptx::mbarrier_wait(&full[at.stage], at.parity);
      }
      give_turn(index + stride);
    }
    const int own_n = first_n + (Tile::kJoins ? ptx::cluster_rank() % 2 * 64 : 0);
    const auto columns = epilogue.columns(lane, own_n);
    ptx::wgmma_wait<0>();
    if (!Source::kScattered || previous >= 0) release(previous);
    if constexpr (kSumsRows<Source>) {
      if (position.n == 0) store_row_sums(source.row_sums, first_m, source.m, position.z, lane, row_sums);
    }
    constexpr bool kDerives = requires { Source::kDerives; }
    &&!kSumsRows<Source>;  // registers are scarce there
    if constexpr (Tile::kJoins) {
      float own[1][32];
      join_sums(sums[0], own[0], store.boxes(), stages + (store.boxes() - staging), grid.blocks(), lane);
      if (ptx::cluster_rank() < 2) epilogue.template store<kDerives>(store, first_m, own_n, position.z, columns, own);
    } else if constexpr (kBringsStages<Tile, Source>) {
      if (epilogue.brings) {
        int first_stage = at.stage, last_stage = at.stage;
        RingPosition<Tile::kStages> brought = at;
        WEFT_UNROLL
        for (int i = 0; i < Tile::kStagesY; ++i, brought.advance()) {
          last_stage = brought.stage;
          ptx::mbarrier_wait(&full[brought.stage], brought.parity);
        }
        const BroughtChunks chunks{stages + first_stage * Tile::kStageBytes, stages + last_stage * Tile::kStageBytes,
                                   Tile::kChunksInStage, band * (Tile::kN / 64)};
        epilogue.template meet<kDerives, Tile::kAlternates>(store, first_n, columns, sums, chunks, [&] {
          ptx::fence_proxy_async();  // TMA will overwrite what threads have read
          WEFT_UNROLL
          for (int i = 0; i < Tile::kStagesY; ++i, at.advance()) release(at.stage);
        });
      }
      epilogue.template store<kDerives>(store, first_m, first_n, position.z, columns, sums, epilogue.brings);
    } else {
      epilogue.template store<kDerives>(store, first_m, first_n, position.z, columns, sums);
    }
    if constexpr (Tile::kAlternates) {
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
  if (Tile::kJoins || gemm.grid.cluster > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
  // By a shuffle, the compiler knows that a warp's lanes agree: stages and descriptors stay in uniform registers.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0), warpgroup = warp / 4;
  if (warpgroup == 0) {
    if constexpr (Tile::kMovesRegisters) ptx::release_registers<40>();
    if (warp == 0) {
      if (ptx::elect_one()) produce<Tile>(gemm.source, gemm.epilogue, gemm.grid, shared, full, empty);
    } else if constexpr (requires { gemm.source.beside(gemm.epilogue, 0); }) {
      gemm.source.beside(gemm.epilogue, static_cast<int>(threadIdx.x) - 32);
    }
    __syncwarp();
    if constexpr (Tile::kJoins) meet_joined(gemm.grid.blocks());
  } else {
    if constexpr (Tile::kMovesRegisters) ptx::acquire_registers<232>();
    consume<Tile>(gemm.source, gemm.epilogue, gemm.grid, shared, staging, full, empty, warpgroup - 1);
  }
  // A block's shared memory must live until its neighbour's multicasts and arrivals have come.
  if (gemm.grid.cluster > 1) ptx::cluster_sync();
}

}  // namespace weft::kernels::cuda
