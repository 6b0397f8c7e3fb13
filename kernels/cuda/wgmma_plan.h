// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

// Host code without CUDA: which tiles gemm_wgmma.cuh works in.

namespace weft::kernels {

/// How a product is cut into tiles.
struct WgmmaPlan {
  /// 64 x 64, 128 x 128, 128 x 256; for few columns 256 x 64, for few rows 64 x 192 and 64 x 256; 128 x 128 whose sums
  /// are stored while the block's next tile is multiplied; 128 x 128 whose depth the blocks of a cluster share.
  enum class Tile { small, medium, large, tall, wide, broad, alternating, joined } tile = Tile::small;
  int splits = 1;   ///< shares of the depth
  int cluster = 1;  ///< blocks that share b's tiles: 1, or 2 of one column of tiles (of 128 or 256 columns each); of
                    ///< joined tiles those of one, 2 or 4
  int share = 0;    ///< steps of 128 bytes of depth (64 k, of tf32 32) in each share

  /// Of a tile.
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
  int sharers() const { return tile == Tile::joined ? 1 : cluster; }
};

/// While it lives, products of this thread that run on wgmma are cut as `plan` says (its share is ignored): for
/// tests and for tuning.
class WgmmaPlanScope {
 public:
  explicit WgmmaPlanScope(const WgmmaPlan& plan) : plan_(plan), before_(current_) { current_ = this; }
  ~WgmmaPlanScope() { current_ = before_; }
  WgmmaPlanScope(const WgmmaPlanScope&) = delete;
  WgmmaPlanScope& operator=(const WgmmaPlanScope&) = delete;

  /// Products that were cut so.
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

/// What a kernel can do besides.
struct WgmmaMay {
  bool split = false;      ///< the depth
  bool be_tall = false;    ///< tiles of 256 x 64
  bool be_wide = false;    ///< tiles of 64 x 192
  bool be_broad = false;   ///< tiles of 64 x 256
  bool alternate = false;  ///< tiles whose sums are stored while the next one is multiplied
  bool join = false;       ///< tiles whose depth the blocks of a cluster share
};

/// The plan for `batch` products of m x n sums over `steps` x 128 bytes of depth. An estimate of cycles decides, for a
/// chip of 132 multiprocessors whatever the present one has: the answer depends on sizes alone, so that results are the
/// same everywhere.
inline WgmmaPlan wgmma_plan(int64_t m, int64_t n, int64_t steps, int64_t batch, WgmmaMay may = {}) {
  using enum WgmmaPlan::Tile;
  constexpr int64_t kMultiprocessors = 132;
  // Cycles of a multiprocessor at 1.7 GHz, fitted to an H200's times of 54 products and convolutions of ViT-B/16 and
  // ResNet-50, each in every tile (`bench --suite plans`; median errors 3 to 6%): a step of one tile; its end, while
  // nothing multiplies; and once, whatever there is to do. Of these, none held out, the choice costs 1% more than
  // the best one, 10% at most.
  struct Shape {
    WgmmaPlan::Tile tile;
    int64_t rows, columns, at_a_time, step, tile_end, once;
    bool allowed;
  };
  const Shape shapes[] = {{large, 128, 256, 1, 1360, 3950, 0, true},
                          {medium, 128, 128, 1, 680, 2700, 1450, true},
                          {small, 64, 64, 2, 620, 1650, 1900, true},
                          {tall, 256, 64, 1, 930, 2400, 0, may.be_tall && n <= 64},
                          // Not measured: multiply as fast as tall ones, which load about as many bytes for a flop.
                          {wide, 64, 192, 1, 700, 3200, 0, may.be_wide},
                          {broad, 64, 256, 1, 930, 3950, 0, may.be_broad && m <= 64},
                          // Deeper sums were not measured.
                          {alternating, 128, 128, 1, 640, 1700, 3700, may.alternate && steps <= 72}};
  WgmmaPlan best{};
  const auto shares_of = [&](int64_t splits) {
    best.share = static_cast<int>((steps + splits - 1) / splits);
    best.splits = static_cast<int>((steps + best.share - 1) / best.share);
  };
  const auto leaves_none_empty = [&](int blocks) { return (blocks - 1) * ((steps + blocks - 1) / blocks) < steps; };
  if (const WgmmaPlan* const forced = WgmmaPlanScope::take()) {
    best = *forced;
    if ((best.tile == tall && !may.be_tall) || (best.tile == wide && !may.be_wide) ||
        (best.tile == broad && !may.be_broad) || (best.tile == alternating && !may.alternate))
      best.tile = medium;
    const bool joins = best.tile == joined && may.join && best.cluster > 1 && leaves_none_empty(best.cluster);
    if (best.tile == joined && !joins) best = {.tile = medium};
    if (best.columns() % 128 != 0 || best.tile == broad) best.cluster = 1;
    shares_of(may.split && !joins ? std::clamp<int64_t>(best.splits, 1, steps) : 1);
    return best;
  }
  int64_t least = INT64_MAX;
  for (const Shape& shape : shapes) {
    if (!shape.allowed) continue;
    const int64_t places = kMultiprocessors * shape.at_a_time;
    const int64_t tiles = (m + shape.rows - 1) / shape.rows * ((n + shape.columns - 1) / shape.columns) * batch;
    // Shares: none, or as many as fill the chip once or a few times, each at least 8 steps deep. Of more turns the last
    // one, which may leave multiprocessors without work, is a smaller part.
    constexpr int64_t kMostTurns = 6;
    for (int64_t turns = 0; turns <= (may.split ? kMostTurns : 0); ++turns) {
      const int64_t splits = turns == 0 ? 1 : std::min(turns * places / std::max<int64_t>(tiles, 1), steps / 8);
      if (splits < 1) continue;
      const int64_t share = (steps + splits - 1) / splits, used = (steps + share - 1) / share;
      const int64_t waves = (tiles * used + places - 1) / places;
      int64_t cycles = waves * (share * shape.step + shape.tile_end) + shape.once;
      // The second pass: a launch, and every plane written and read at about 1500 bytes a cycle.
      if (used > 1) cycles += 4000 + used * m * n * batch * 8 / 1500;
      if (cycles < least) {
        least = cycles;
        best.tile = shape.tile;
        shares_of(splits);
      }
    }
  }
  // One tile of 128 x 128 for each cluster, each share at least 4 steps deep, where all clusters run at a time: of 32
  // clusters of four an H200 ran only a part (products took 1.5 to 1.7 times as long), 16 at once. A block ends half a
  // tile; an exchange costs what makes 1024^3 no faster than tiles of 64 x 64, as it was there.
  for (const int blocks : {2, 4}) {
    const int64_t tiles = (m + 127) / 128 * ((n + 127) / 128) * batch, share = (steps + blocks - 1) / blocks;
    if (!may.join || tiles * blocks > (blocks == 2 ? kMultiprocessors : 96) || share < 4 || !leaves_none_empty(blocks))
      continue;
    const int64_t cycles = share * 680 + 2700 / 2 + (blocks == 2 ? 5500 : 7800) + 1450;
    if (cycles >= least) continue;
    least = cycles;
    best.tile = joined;
    best.cluster = blocks;
    shares_of(1);
  }
  // Of large tiles, where there are enough, and pairs of them need no more turns: of an odd number of rows of tiles the
  // last one's are paired along n (WgmmaGrid). On an H200 pairs of others cost 1 to 4% more than they save.
  const int64_t tiles_m = (m + best.rows() - 1) / best.rows(), tiles_n = (n + best.columns() - 1) / best.columns();
  const int64_t slices = batch * best.splits, pairs = tiles_m / 2 * tiles_n + tiles_m % 2 * ((tiles_n + 1) / 2);
  const auto turns = [](int64_t blocks) { return (blocks + kMultiprocessors - 1) / kMultiprocessors; };
  if (best.tile == large && tiles_m > 1 && (m + 127) / 128 * ((n + 127) / 128) * slices >= 64 &&
      turns(2 * pairs * slices) == turns(tiles_m * tiles_n * slices))
    best.cluster = 2;
  return best;
}

}  // namespace weft::kernels
