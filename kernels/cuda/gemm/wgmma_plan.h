// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

// Host code without CUDA: selects the tiles of gemm_wgmma.cuh.

namespace weft::kernels {

/// How a GEMM is divided into tiles.
struct WgmmaPlan {
  /// 64 x 64, 128 x 128, 128 x 256; for few columns 256 x 64, for few rows 64 x 192 and 64 x 256; ping_pong: 128 x
  /// 128, ping-pong schedule; cluster_split_k: 128 x 128, cluster split-K.
  enum class Tile { small, medium, large, tall, wide, broad, ping_pong, cluster_split_k } tile = Tile::small;
  int splits = 1;   ///< split-K slices
  int cluster = 1;  ///< blocks that share b: 1, or 2 in one column of tiles (128 or 256 columns each); cluster_split_k:
                    ///< blocks per tile, 2 or 4
  int share = 0;  ///< K steps per slice, each 128 bytes (64 k; tf32: 32 k)

  /// Rows and columns of a tile.
  int rows() const {
    using enum Tile;
    return tile == tall ? 256 : tile == small || tile == wide || tile == broad ? 64 : 128;
  }
  int columns() const {
    using enum Tile;
    if (tile == small || tile == tall) return 64;
    return tile == wide ? 192 : tile == large || tile == broad ? 256 : 128;
  }
  /// Blocks that share b.
  int sharers() const { return tile == Tile::cluster_split_k ? 1 : cluster; }
};

/// While an object lives, wgmma GEMMs of this thread use `plan` (share is ignored). For tests and tuning.
class WgmmaPlanScope {
 public:
  explicit WgmmaPlanScope(const WgmmaPlan& plan) : plan_(plan), before_(current_) { current_ = this; }
  ~WgmmaPlanScope() { current_ = before_; }
  WgmmaPlanScope(const WgmmaPlanScope&) = delete;
  WgmmaPlanScope& operator=(const WgmmaPlanScope&) = delete;

  /// The number of GEMMs that used the plan.
  int uses() const { return uses_; }
  /// The plan in force, or nullptr.
  static const WgmmaPlan* take() {
    if (current_ == nullptr) return nullptr;
    ++current_->uses_;
    return &current_->plan_;
  }

 private:
  static inline thread_local WgmmaPlanScope* current_ = nullptr;
  WgmmaPlan plan_;
  WgmmaPlanScope* before_;
  int uses_ = 0;
};

/// Optional features of a kernel.
struct WgmmaMay {
  bool split = false;            ///< split K over slices
  bool be_tall = false;          ///< tiles of 256 x 64
  bool be_wide = false;          ///< tiles of 64 x 192
  bool be_broad = false;         ///< tiles of 64 x 256
  bool ping_pong = false;        ///< ping-pong tiles
  bool cluster_split_k = false;  ///< cluster split-K tiles
};

/// The plan for `batch` GEMMs of m x n results with `steps` x 128 bytes of K. The plan has the least estimated cycles
/// on a GPU of 132 SMs, whatever GPU is present: it depends on sizes alone, so that results are the same everywhere.
inline WgmmaPlan wgmma_plan(int64_t m, int64_t n, int64_t steps, int64_t batch, WgmmaMay may = {}) {
  using enum WgmmaPlan::Tile;
  constexpr int64_t kMultiprocessors = 132;
  // Cycles of an SM at 1.7 GHz, fitted to an H200's times of 54 GEMMs and convolutions of ViT-B/16 and ResNet-50. Each
  // ran in every tile (`bench --suite plans`; median errors 3 to 6%). `step`, a tile's K step; `tile_end`, the
  // epilogue, which overlaps no multiplication; `once`, a constant per launch. On these problems, none held out, the
  // choice costs on average 1% more than the best tile, at most 10%.
  struct Shape {
    WgmmaPlan::Tile tile;
    int64_t rows, columns, at_a_time, step, tile_end, once;
    bool allowed;
  };
  const Shape shapes[] = {{large, 128, 256, 1, 1360, 3950, 0, true},
                          {medium, 128, 128, 1, 680, 2700, 1450, true},
                          {small, 64, 64, 2, 620, 1650, 1900, true},
                          {tall, 256, 64, 1, 930, 2400, 0, may.be_tall && n <= 64},
                          // Not measured: assumed as fast as tall tiles, which load about as many bytes per flop.
                          {wide, 64, 192, 1, 700, 3200, 0, may.be_wide},
                          {broad, 64, 256, 1, 930, 3950, 0, may.be_broad && m <= 64},
                          // Larger K was not measured.
                          {ping_pong, 128, 128, 1, 640, 1700, 3700, may.ping_pong && steps <= 72}};
  WgmmaPlan best{};
  const auto shares_of = [&](int64_t splits) {
    best.share = static_cast<int>((steps + splits - 1) / splits);
    best.splits = static_cast<int>((steps + best.share - 1) / best.share);
  };
  const auto leaves_none_empty = [&](int blocks) { return (blocks - 1) * ((steps + blocks - 1) / blocks) < steps; };
  if (const WgmmaPlan* const forced = WgmmaPlanScope::take()) {
    best = *forced;
    if ((best.tile == tall && !may.be_tall) || (best.tile == wide && !may.be_wide) ||
        (best.tile == broad && !may.be_broad) || (best.tile == ping_pong && !may.ping_pong))
      best.tile = medium;
    const bool joins =
        best.tile == cluster_split_k && may.cluster_split_k && best.cluster > 1 && leaves_none_empty(best.cluster);
    if (best.tile == cluster_split_k && !joins) best = {.tile = medium};
    if (best.columns() % 128 != 0 || best.tile == broad) best.cluster = 1;
    shares_of(may.split && !joins ? std::clamp<int64_t>(best.splits, 1, steps) : 1);
    return best;
  }
  int64_t least = INT64_MAX;
  for (const Shape& shape : shapes) {
    if (!shape.allowed) continue;
    const int64_t places = kMultiprocessors * shape.at_a_time;
    const int64_t tiles = (m + shape.rows - 1) / shape.rows * ((n + shape.columns - 1) / shape.columns) * batch;
    // Split-K slices: one, or as many as fill the GPU for 1 to 6 waves, each of at least 8 K steps. With more waves the
    // last, partial wave is a smaller part of the time.
    constexpr int64_t kMostTurns = 6;
    for (int64_t turns = 0; turns <= (may.split ? kMostTurns : 0); ++turns) {
      const int64_t splits = turns == 0 ? 1 : std::min(turns * places / std::max<int64_t>(tiles, 1), steps / 8);
      if (splits < 1) continue;
      const int64_t share = (steps + splits - 1) / splits, used = (steps + share - 1) / share;
      const int64_t waves = (tiles * used + places - 1) / places;
      int64_t cycles = waves * (share * shape.step + shape.tile_end) + shape.once;
      // The second pass: a launch, and each slice's plane written and read at about 1500 bytes per cycle.
      if (used > 1) cycles += 4000 + used * m * n * batch * 8 / 1500;
      if (cycles < least) {
        least = cycles;
        best.tile = shape.tile;
        shares_of(splits);
      }
    }
  }
  // Cluster split-K: one 128 x 128 tile per cluster, each slice of at least 4 K steps, if all clusters run
  // concurrently. An H200 ran 16 clusters of four at once, but not 32 (those GEMMs took 1.5 to 1.7 times as long). A
  // block runs the epilogue of half a tile. The exchange's cost is chosen so that 1024^3 is no faster than with 64 x 64
  // tiles, as measured on an H200.
  for (const int blocks : {2, 4}) {
    const int64_t tiles = (m + 127) / 128 * ((n + 127) / 128) * batch, share = (steps + blocks - 1) / blocks;
    if (!may.cluster_split_k || tiles * blocks > (blocks == 2 ? kMultiprocessors : 96) || share < 4 ||
        !leaves_none_empty(blocks))
      continue;
    const int64_t cycles = share * 680 + 2700 / 2 + (blocks == 2 ? 5500 : 7800) + 1450;
    if (cycles >= least) continue;
    least = cycles;
    best.tile = cluster_split_k;
    best.cluster = blocks;
    shares_of(1);
  }
  // Clusters of two large tiles, if there are enough tiles and pairing adds no wave. If the number of tile rows is odd,
  // the last row's tiles are paired along n (WgmmaGrid). On an H200, pairing other tiles costs 1 to 4% more than it
  // saves.
  const int64_t tiles_m = (m + best.rows() - 1) / best.rows(), tiles_n = (n + best.columns() - 1) / best.columns();
  const int64_t slices = batch * best.splits, pairs = tiles_m / 2 * tiles_n + tiles_m % 2 * ((tiles_n + 1) / 2);
  const auto turns = [](int64_t blocks) { return (blocks + kMultiprocessors - 1) / kMultiprocessors; };
  if (best.tile == large && tiles_m > 1 && (m + 127) / 128 * ((n + 127) / 128) * slices >= 64 &&
      turns(2 * pairs * slices) == turns(tiles_m * tiles_n * slices))
    best.cluster = 2;
  return best;
}

}  // namespace weft::kernels
