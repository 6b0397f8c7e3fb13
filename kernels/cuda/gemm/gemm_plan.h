// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

// Selects the tile of a GEMM that does not run on wgmma, and split-K slices if the result alone cannot fill a GPU. The
// choice depends on the sizes alone, never on the GPU, so that results are the same everywhere.

namespace weft::kernels {

/// Rows and columns: 32 x 32, 64 x 64, 128 x 128, 128 x 256; for few columns 256 x 64, for few rows 64 x 128.
enum class TileSize { small, medium, large, wide, tall, flat };

/// While an object lives, GEMMs of this thread use this tile, or `large` if it does not exist for their type. For
/// tests.
class TileScope {
 public:
  explicit TileScope(TileSize size) : size_(size), before_(current_) { current_ = this; }
  ~TileScope() { current_ = before_; }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  static const TileSize* forced() { return current_ ? &current_->size_ : nullptr; }

 private:
  static inline thread_local TileScope* current_ = nullptr;
  TileSize size_;
  TileScope* before_;
};

constexpr int64_t tile_rows(TileSize size) {
  using enum TileSize;
  return size == small ? 32 : size == medium || size == flat ? 64 : size == tall ? 256 : 128;
}

constexpr int64_t tile_columns(TileSize size) {
  using enum TileSize;
  return size == small ? 32 : size == medium || size == tall ? 64 : size == wide ? 256 : 128;
}

inline int64_t tile_count(TileSize size, int64_t m, int64_t n) {
  const int64_t rows = tile_rows(size), columns = tile_columns(size);
  return ((m + rows - 1) / rows) * ((n + columns - 1) / columns);
}

/// Whether GEMMs of type T have this tile; a is laid out along k or along its rows. Tiles other than squares of up to
/// 128 need two-byte types; tall ones need a along k, flat ones along its rows.
template <class T>
constexpr bool has_tile(TileSize size, bool a_along_k) {
  using enum TileSize;
  if (std::is_same_v<T, double>) return size == small;
  if (size == small || size == medium || size == large) return true;
  return sizeof(T) == 2 && (size == wide || (size == tall) == a_along_k);
}

constexpr int64_t kPlannedProcessors = 108;  ///< SMs of an A100; wgmma_plan.h plans for GPUs with wgmma

/// Whether tiles of 128 x 256, one per SM, beat two tiles of 128 x 128. They load three quarters of the bytes, but
/// nothing overlaps their prologue and epilogue, so they need a large K; and in the last wave each takes as long as
/// two. Results are bit-identical.
inline bool prefers_wide(int64_t m, int64_t n, int64_t k, int64_t slices) {
  constexpr int64_t kDeep = 1024;
  const auto rounds = [&](TileSize size) {
    return (tile_count(size, m, n) * slices + kPlannedProcessors - 1) / kPlannedProcessors;
  };
  return k >= kDeep && 2 * rounds(TileSize::wide) <= rounds(TileSize::large);
}

/// The largest tile that wastes less than half of its area and still gives enough blocks; k: per slice.
template <class T>
TileSize choose_tile(int64_t m, int64_t n, int64_t k, int64_t slices, bool a_along_k) {
  if (const TileSize* const forced = TileScope::forced())
    return has_tile<T>(*forced, a_along_k) ? *forced : std::is_same_v<T, double> ? TileSize::small : TileSize::large;
  const auto fills = [&](TileSize size, int64_t blocks) {
    return has_tile<T>(size, a_along_k) && tile_count(size, m, n) * slices >= blocks;
  };
  const int64_t shorter = std::min(m, n);
  if (shorter > 64 && fills(TileSize::large, 96))
    return has_tile<T>(TileSize::wide, a_along_k) && prefers_wide(m, n, k, slices) ? TileSize::wide : TileSize::large;
  // Two such tiles fit per SM. They are used only if they fill every SM twice; otherwise 64 x 64 tiles are faster.
  if (shorter > 32 && n <= 64 && fills(TileSize::tall, 2 * kPlannedProcessors)) return TileSize::tall;
  if (shorter > 32 && fills(TileSize::medium, 16)) return TileSize::medium;
  return TileSize::small;
}

/// A GEMM whose K is split into `splits` slices of `depth` each, a multiple of the main loop's step.
struct SplitPlan {
  TileSize size = TileSize::small;
  int64_t splits = 1, depth = 0;
  double cycles = 0;  ///< estimate for an A100 and two-byte elements
};

/// Estimates a GEMM's cycles in tiles of this size with about `splits` slices of K: SM cycles for a K step of one tile
/// while `at_a_time` tiles run, and for a tile's prologue and epilogue. The constants are predictions of the model of
/// time (benchmarks/results/2026-11-26-own-kernels.md), not measurements.
inline SplitPlan split_plan(TileSize size, int64_t m, int64_t n, int64_t k, int64_t batch, int64_t splits) {
  struct Cost {
    int64_t at_a_time;
    double step, end;
  };
  constexpr Cost kCosts[] = {{12, 80, 500},   {4, 210, 1000}, {2, 590, 2500},
                             {1, 1120, 5000}, {2, 600, 2500}, {4, 350, 1500}};  // in the order of TileSize
  const auto [at_a_time, step, end] = kCosts[static_cast<int>(size)];
  const int64_t depth = ((k + splits - 1) / splits + 31) / 32 * 32;
  splits = std::max<int64_t>(1, depth == 0 ? 1 : (k + depth - 1) / depth);
  const int64_t blocks = tile_count(size, m, n) * batch * splits, at_once = kPlannedProcessors * at_a_time;
  // The last wave: fewer blocks per SM take less time, but not in proportion.
  const int64_t last = (blocks % at_once + kPlannedProcessors - 1) / kPlannedProcessors;
  const double rounds = static_cast<double>(blocks / at_once) +
                        (last == 0 ? 0.0 : 0.4 + 0.6 * static_cast<double>(last) / static_cast<double>(at_a_time));
  const double cycles = rounds * static_cast<double>(at_a_time) * (static_cast<double>(depth) / 32 * step + end);
  // A second launch adds the slices: each is written and read once, at about 1,500 bytes per cycle.
  const double sum = splits == 1 ? 0 : 6000 + static_cast<double>(8 * m * n * batch * splits) / 1500;
  return {size, splits, depth, cycles + sum};
}

/// The tile and the split-K slices for a GEMM whose result alone may not fill a GPU. Four-byte and eight-byte elements:
/// two blocks for each of 128 SMs, each slice with K of at least 256.
template <class T>
SplitPlan choose_split(int64_t m, int64_t n, int64_t k, int64_t batch, bool a_along_k) {
  using enum TileSize;
  constexpr int64_t kLeastDepth = 256;
  const TileSize* const forced = TileScope::forced();
  if (sizeof(T) > 2) {
    const int64_t shorter = std::min(m, n);
    const TileSize size = std::is_same_v<T, double> ? small
                          : forced                  ? choose_tile<T>(m, n, k, batch, a_along_k)
                          : shorter > 64            ? large
                          : shorter > 32            ? medium
                                                    : small;
    const int64_t wanted = 256 / std::max<int64_t>(1, tile_count(size, m, n) * batch);
    return split_plan(size, m, n, k, batch, std::max<int64_t>(1, std::min(wanted, k / kLeastDepth)));
  }
  SplitPlan best;
  for (const TileSize size : {small, medium, large, wide, tall, flat}) {
    if (forced ? size != choose_tile<T>(m, n, k, batch, a_along_k) : !has_tile<T>(size, a_along_k)) continue;
    const auto consider = [&](int64_t splits) {
      const SplitPlan plan = split_plan(size, m, n, k, batch, splits);
      if (best.depth == 0 || plan.cycles < best.cycles) best = plan;
    };
    consider(1);
    const int64_t tiles = std::max<int64_t>(1, tile_count(size, m, n) * batch);
    // Slice counts that give each SM about `each` blocks.
    for (int64_t each = 1, before = 1; each <= 12; ++each) {
      const int64_t splits = std::min(each * kPlannedProcessors / tiles, k / kLeastDepth);
      if (splits > before) consider(before = splits);
    }
  }
  return best;
}

/// Whether split-K with its second pass beats the unsplit GEMM in tiles of size `alone`.
template <class T>
bool split_pays(const SplitPlan& split, TileSize alone, int64_t m, int64_t n, int64_t k) {
  if (sizeof(T) > 2) return split.splits >= 4;
  return split.splits > 1 && split.cycles < 0.9 * split_plan(alone, m, n, k, 1, 1).cycles;
}

}  // namespace weft::kernels
