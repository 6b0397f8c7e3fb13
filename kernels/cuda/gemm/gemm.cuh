// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/gemm/gemm_fma.cuh"
#include "kernels/cuda/gemm/gemm_mma.cuh"
#include "kernels/cuda/gemm/gemm_plan.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/f32_products.h"
#include "kernels/view.h"

// Launches a GEMM problem in the tiles that gemm_plan.h selected.

namespace weft::kernels::cuda {

/// CUDA cores use square tiles of 32, 64 and 128. Tensor cores use these and, for 16-bit types, other shapes:
/// transposing f32 fragments by hand leaves no registers for warps of 64 x 64.
template <TileSize size>
using FmaTileOf =
    std::conditional_t<size == TileSize::small, FmaTile<32, 32, 1>,
                       std::conditional_t<size == TileSize::medium, FmaTile<64, 64, 2>, FmaTile<128, 128, 2>>>;
template <TileSize size, class T, class B>
struct MmaTiles {
  using Of = MmaTile<128, 128, 64, sizeof(T) == 4 ? 32 : 64, 4>;
};
template <class T, class B>
struct MmaTiles<TileSize::small, T, B> {
  using Of = MmaTile<32, 32, 32, 32, 3>;
};
template <class T, class B>
struct MmaTiles<TileSize::medium, T, B> {
  using Of = MmaTile<64, 64, 32, 32, 3>;
};
template <class T, class B>
struct MmaTiles<TileSize::wide, T, B> {
  using Of = MmaTile<128, 256, 64, 64, 4>;
};
template <class T, class B>
struct MmaTiles<TileSize::tall, T, B> {
  using Of = MmaTile<256, 64, 64, 64, 4>;
};
template <class T>
struct MmaTiles<TileSize::tall, T, FilterOperand<T>> {  // its addresses need the registers of larger tiles
  using Of = MmaTile<256, 64, 32, 64, 4>;
};
template <class T, class B>
struct MmaTiles<TileSize::flat, T, B> {
  using Of = MmaTile<64, 128, 64, 64, 3>;
};
template <TileSize size, class T, class B>
using MmaTileOf = typename MmaTiles<size, T, B>::Of;

/// Enqueues problem.slice(0 … slices-1), each m x n or smaller; results out of bounds are not stored.
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
    using OnTensorCores = MmaTileOf<chosen, T, typename Problem::Slice::B>;
    using Ordinary = FmaTileOf<chosen>;
    if constexpr (sizeof(T) == 2) {
      run.template operator()<OnTensorCores>(&gemm_mma_kernel<OnTensorCores, T, Problem>);
    } else {
      if constexpr (std::is_same_v<T, float>)
        if (allow_tf32()) return run.template operator()<OnTensorCores>(&gemm_mma_kernel<OnTensorCores, T, Problem>);
      run.template operator()<Ordinary>(&gemm_fma_kernel<Ordinary, T, Problem>);
    }
  };
  const auto run_if = [&]<TileSize one>() {
    if constexpr (has_tile<T>(one, Problem::Slice::A::kMajor == Major::depth)) {
      if (size != one) return;
      constexpr TileSize other = one == TileSize::wide ? TileSize::large : one;
      using Tile = MmaTileOf<one, T, typename Problem::Slice::B>;
      if constexpr (sizeof(T) == 2 && kBeforeHopper<Tile, typename Problem::Slice>)
        if (compute_capability(queue) >= 90) return run_sized.template operator()<other>();
      run_sized.template operator()<one>();
    }
  };
  run_if.template operator()<TileSize::small>();
  run_if.template operator()<TileSize::medium>();
  run_if.template operator()<TileSize::large>();
  run_if.template operator()<TileSize::wide>();
  run_if.template operator()<TileSize::tall>();
  run_if.template operator()<TileSize::flat>();
}

/// Whether rows of y that begin at multiples of `pitch` elements allow stores of 4 elements.
inline bool allows_vector_store(const View& y, int64_t pitch) {
  return pitch % 4 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0;
}

/// Whether lines of `pitch` elements, contiguous from `data`, consist of whole segments (8 elements of 2 bytes, 4 of 4
/// or 8) on 16-byte boundaries.
template <class T>
bool allows_vector_load(const void* data, int64_t pitch) {
  return pitch % (sizeof(T) == 2 ? 8 : 4) == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

}  // namespace weft::kernels::cuda
