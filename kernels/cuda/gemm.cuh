// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/allocator.h"
#include "kernels/cuda/gemm_fma.cuh"
#include "kernels/cuda/gemm_mma.cuh"
#include "kernels/tf32.h"
#include "kernels/view.h"

// Launches a GEMM problem: picks the tile, and splits k where the result alone cannot fill a GPU.

namespace weft::kernels::WEFT_DEVICE {

enum class TileSize { small, medium, large };

/// Tiles of {32, 64, 128} rows and columns: on the ordinary cores, and on the tensor cores. Squares of f32 that are
/// turned by hand leave no registers for warps of 64 x 64.
template <TileSize size>
using FmaTileOf =
    std::conditional_t<size == TileSize::small, FmaTile<32, 32, 1>,
                       std::conditional_t<size == TileSize::medium, FmaTile<64, 64, 2>, FmaTile<128, 128, 2>>>;
template <TileSize size, class T>
using MmaTileOf = std::conditional_t<size == TileSize::small, MmaTile<32, 32, 32, 32, 3>,
                                     std::conditional_t<size == TileSize::medium, MmaTile<64, 64, 32, 32, 3>,
                                                        MmaTile<128, 128, 64, sizeof(T) == 4 ? 32 : 64, 4>>>;

constexpr int64_t tile_edge(TileSize size) {
  return size == TileSize::small ? 32 : size == TileSize::medium ? 64 : 128;
}

inline int64_t tile_count(TileSize size, int64_t m, int64_t n) {
  const int64_t edge = tile_edge(size);
  return ((m + edge - 1) / edge) * ((n + edge - 1) / edge);
}

/// The largest tile that wastes less than half of its area and still gives `enough` blocks; the answer depends on the
/// sizes alone, never on the GPU, so that results are the same everywhere.
template <class T>
TileSize choose_tile(int64_t m, int64_t n, int64_t slices, int64_t enough_large = 96, int64_t enough_medium = 16) {
  if (std::is_same_v<T, double>) return TileSize::small;
  const int64_t shorter = std::min(m, n);
  if (shorter > 64 && tile_count(TileSize::large, m, n) * slices >= enough_large) return TileSize::large;
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

/// Enqueues problem.slice(0 … slices-1), each m x n (or less: what lies outside is not stored).
template <class T, class Problem>
void launch_gemm(const Queue& queue, const char* name, TileSize size, const Problem& problem, int64_t m, int64_t n,
                 int64_t slices) {
  const auto run = [&]<class Tile>(auto kernel) {
    const int64_t tiles_m = (m + Tile::kM - 1) / Tile::kM, tiles_n = (n + Tile::kN - 1) / Tile::kN;
    const int64_t blocks = tiles_m * tiles_n * slices;
    WEFT_CHECK(blocks < int64_t{1} << 31, name, ": expected less than 2^31 tiles, got ", blocks);
    const GemmGrid grid{static_cast<int>(tiles_m), static_cast<int>(tiles_n)};
    launch(queue, name, dim3(static_cast<unsigned>(blocks)), dim3(Tile::kThreads), Tile::template kSharedBytes<T>,
           kernel, problem, grid);
  };
  const auto run_sized = [&]<TileSize chosen>() {
    using OnTensorCores = MmaTileOf<chosen, T>;
    using Ordinary = FmaTileOf<chosen>;
    if constexpr (sizeof(T) == 2) {
      run.template operator()<OnTensorCores>(&gemm_mma_kernel<OnTensorCores, T, Problem>);
    } else {
      if constexpr (std::is_same_v<T, float>)
        if (allow_tf32()) return run.template operator()<OnTensorCores>(&gemm_mma_kernel<OnTensorCores, T, Problem>);
      run.template operator()<Ordinary>(&gemm_fma_kernel<Ordinary, T, Problem>);
    }
  };
  if constexpr (std::is_same_v<T, double>)
    run_sized.template operator()<TileSize::small>();
  else if (size == TileSize::large)
    run_sized.template operator()<TileSize::large>();
  else if (size == TileSize::medium)
    run_sized.template operator()<TileSize::medium>();
  else
    run_sized.template operator()<TileSize::small>();
}

/// True where rows of y beginning at multiples of `pitch` elements allow stores of 4 elements.
inline bool allows_vector_store(const View& y, int64_t pitch) {
  return pitch % 4 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0;
}

/// True where lines beginning at multiples of `pitch` elements, and as long, consist of whole runs (8 elements of 2
/// bytes, 4 of 4 or 8) on 16-byte boundaries.
template <class T>
bool allows_vector_load(const void* data, int64_t pitch) {
  return pitch % (sizeof(T) == 2 ? 8 : 4) == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

}  // namespace weft::kernels::WEFT_DEVICE
