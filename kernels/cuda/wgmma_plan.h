// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

// Host code without CUDA: which tiles gemm_wgmma.cuh works in.

namespace weft::kernels {

/// How a product is cut into tiles.
struct WgmmaPlan {
  /// 64 x 64, 128 x 128, 128 x 256; for few columns 256 x 64.
  enum class Tile { small, medium, large, tall } tile = Tile::small;
  int splits = 1;   ///< shares of the depth
  int cluster = 1;  ///< blocks that share b's tiles: 1, or 2 of one column of tiles (of more than 64 columns each)
  int share = 0;    ///< steps of 128 bytes of depth (64 k, of tf32 32) in each share

  int rows() const { return tile == Tile::tall ? 256 : tile == Tile::small ? 64 : 128; }  ///< of a tile
  int columns() const { return tile == Tile::large ? 256 : tile == Tile::medium ? 128 : 64; }
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

/// The plan for `batch` products of m x n sums over `steps` x 128 bytes of depth. An estimate of cycles decides, for a
/// chip of 132 multiprocessors whatever the present one has: the answer depends on sizes alone, so that results are the
/// same everywhere. Depth is split only where `may_split`, tiles have 256 rows only where they `may_be_tall`.
inline WgmmaPlan wgmma_plan(int64_t m, int64_t n, int64_t steps, int64_t batch, bool may_split,
                            bool may_be_tall = false) {
  using enum WgmmaPlan::Tile;
  constexpr int64_t kMultiprocessors = 132;
  // Cycles of a multiprocessor for a step of one tile: the tensor cores' (128 for 64 x 64 x 64, and for 64 x 64 x 32 of
  // tf32) or those in which L2 delivers the operands at about 40 bytes a cycle, whichever is more; and for a tile's
  // start and end.
  struct Shape {
    WgmmaPlan::Tile tile;
    int64_t rows, columns, step, tile_overhead;
  };
  constexpr Shape kShapes[] = {{large, 128, 256, 1100, 2500},
                               {medium, 128, 128, 700, 1800},
                               {small, 64, 64, 400, 1200},
                               {tall, 256, 64, 900, 1800}};
  WgmmaPlan best{};
  const auto shares_of = [&](int64_t splits) {
    best.share = static_cast<int>((steps + splits - 1) / splits);
    best.splits = static_cast<int>((steps + best.share - 1) / best.share);
  };
  if (const WgmmaPlan* const forced = WgmmaPlanScope::take()) {
    best = *forced;
    if (!may_be_tall && best.tile == tall) best.tile = medium;
    if (best.columns() == 64) best.cluster = 1;
    shares_of(may_split ? std::clamp<int64_t>(forced->splits, 1, steps) : 1);
    return best;
  }
  int64_t least = INT64_MAX;
  for (const Shape& shape : kShapes) {
    if (shape.tile == tall && !may_be_tall) continue;
    const int64_t tiles = (m + shape.rows - 1) / shape.rows * ((n + shape.columns - 1) / shape.columns) * batch;
    // Shares: none, or as many as fill the chip once or a few times, each at least 8 steps deep. Of more turns the last
    // one, which may leave multiprocessors without work, is a smaller part.
    constexpr int64_t kMostTurns = 6;
    for (int64_t turns = 0; turns <= (may_split ? kMostTurns : 0); ++turns) {
      const int64_t splits =
          turns == 0 ? 1 : std::min(turns * kMultiprocessors / std::max<int64_t>(tiles, 1), steps / 8);
      if (splits < 1) continue;
      const int64_t share = (steps + splits - 1) / splits, used = (steps + share - 1) / share;
      const int64_t waves = (tiles * used + kMultiprocessors - 1) / kMultiprocessors;
      int64_t cycles = waves * (share * shape.step + shape.tile_overhead);
      // The second pass: a launch, and every plane written and read at about 1500 bytes a cycle.
      if (used > 1) cycles += 4000 + used * m * n * batch * 8 / 1500;
      if (cycles < least) {
        least = cycles;
        best.tile = shape.tile;
        shares_of(splits);
      }
    }
  }
  // Where there are enough tiles, and pairs of them need no more turns: of an odd number of rows of tiles the last
  // one's are paired along n (WgmmaGrid).
  const int64_t tiles_m = (m + best.rows() - 1) / best.rows(), tiles_n = (n + best.columns() - 1) / best.columns();
  const int64_t slices = batch * best.splits, pairs = tiles_m / 2 * tiles_n + tiles_m % 2 * ((tiles_n + 1) / 2);
  const auto turns = [](int64_t blocks) { return (blocks + kMultiprocessors - 1) / kMultiprocessors; };
  if (best.columns() > 64 && tiles_m > 1 && (m + 127) / 128 * ((n + 127) / 128) * slices >= 64 &&
      turns(2 * pairs * slices) == turns(tiles_m * tiles_n * slices))
    best.cluster = 2;
  return best;
}

}  // namespace weft::kernels
