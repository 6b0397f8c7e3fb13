// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include "kernels/allocator.h"
#include "kernels/cuda/gemm_fma.cuh"
#include "kernels/cuda/gemm_mma.cuh"
#include "kernels/cuda/gemm_plan.h"
#include "kernels/tf32.h"
#include "kernels/view.h"

// Launches a GEMM problem in the tiles that gemm_plan.h has picked.

namespace weft::kernels::WEFT_DEVICE {

/// Tiles of {32, 64, 128} rows and columns: on the ordinary cores, and on the tensor cores, which in 16 bits have 128 x
/// 256, too. Squares of f32 that are turned by hand leave no registers for warps of 64 x 64.
template <TileSize size>
using FmaTileOf =
    std::conditional_t<size == TileSize::small, FmaTile<32, 32, 1>,
                       std::conditional_t<size == TileSize::medium, FmaTile<64, 64, 2>, FmaTile<128, 128, 2>>>;
template <TileSize size, class T>
using MmaTileOf =
    std::conditional_t<size == TileSize::small, MmaTile<32, 32, 32, 32, 3>,
                       std::conditional_t<size == TileSize::medium, MmaTile<64, 64, 32, 32, 3>,
                                          std::conditional_t<size == TileSize::wide, MmaTile<128, 256, 64, 64, 4>,
                                                             MmaTile<128, 128, 64, sizeof(T) == 4 ? 32 : 64, 4>>>>;

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
  else if (sizeof(T) == 2 && size == TileSize::wide)
    run_sized.template operator()<sizeof(T) == 2 ? TileSize::wide : TileSize::large>();
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
