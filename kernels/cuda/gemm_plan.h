// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

// How products that do not run on wgmma are cut: the tile, and shares of k where the result alone cannot fill a GPU.
// The answer depends on the sizes alone, never on the GPU, so that results are the same everywhere.

namespace weft::kernels {

/// Rows and columns: 32 x 32, 64 x 64, 128 x 128; 128 x 256.
enum class TileSize { small, medium, large, wide };

/// While it lives, products of this thread have this tile, or large ones where there are no wide ones: for tests.
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
  return size == TileSize::small ? 32 : size == TileSize::medium ? 64 : 128;
}

inline int64_t tile_count(TileSize size, int64_t m, int64_t n) {
  const int64_t rows = tile_rows(size), columns = size == TileSize::wide ? 2 * rows : rows;
  return ((m + rows - 1) / rows) * ((n + columns - 1) / columns);
}

/// Whether tiles of 128 x 256, one on a multiprocessor at a time, beat two of 128 x 128. They read three quarters of
/// the bytes, but nothing overlaps with their beginnings and ends, so they want a deep k; and in the last wave each
/// takes as long as two, here on the 108 multiprocessors of an A100. The sums have the same bits with both.
inline bool prefers_wide(int64_t m, int64_t n, int64_t k, int64_t slices) {
  constexpr int64_t kProcessors = 108, kDeep = 1024;
  const auto rounds = [&](TileSize size) { return (tile_count(size, m, n) * slices + kProcessors - 1) / kProcessors; };
  return k >= kDeep && 2 * rounds(TileSize::wide) <= rounds(TileSize::large);
}

/// The largest tile that wastes less than half of its area and still gives `enough` blocks. k: of a slice; 0: no wide
/// tiles.
template <class T>
TileSize choose_tile(int64_t m, int64_t n, int64_t k, int64_t slices, int64_t enough_large = 96,
                     int64_t enough_medium = 16) {
  if (std::is_same_v<T, double>) return TileSize::small;
  constexpr bool kMayBeWide = sizeof(T) == 2;
  if (const TileSize* const forced = TileScope::forced())
    return *forced == TileSize::wide && !kMayBeWide ? TileSize::large : *forced;
  const int64_t shorter = std::min(m, n);
  if (shorter > 64 && tile_count(TileSize::large, m, n) * slices >= enough_large)
    return kMayBeWide && prefers_wide(m, n, k, slices) ? TileSize::wide : TileSize::large;
  if (shorter > 32 && tile_count(TileSize::medium, m, n) * slices >= enough_medium) return TileSize::medium;
  return TileSize::small;
}

/// Shares of k so that a launch has about 2 blocks for each of 128 multiprocessors, each share at least 256 deep.
inline int64_t choose_splits(TileSize size, int64_t m, int64_t n, int64_t k, int64_t slices) {
  const int64_t wanted = 256 / std::max<int64_t>(1, tile_count(size, m, n) * slices);
  return std::max<int64_t>(1, std::min(wanted, k / 256));
}

/// Depth of each of `splits` shares: whole steps of the main loops.
inline int64_t split_depth(int64_t k, int64_t splits) { return ((k + splits - 1) / splits + 31) / 32 * 32; }

}  // namespace weft::kernels
