// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/gemm/gemm_wgmma.cuh"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "kernels/cuda/launch_overlapped.cuh"
#include "kernels/runtime/kernel_variant.h"

namespace weft::kernels::cuda {

/// Lines of the TMA boxes of a tile's operands: with Along::depth all lines that a block loads; else one chunk, 128
/// bytes of rows in each of a step's k lines.
struct WgmmaBoxRows {
  int a, b;
  WgmmaBoxRows(const WgmmaPlan& plan, ptx::Along along_a, ptx::Along along_b)
      : a(along_a == ptx::Along::depth ? plan.rows() : kChunkRows),
        b(along_b == ptx::Along::depth ? plan.columns() / plan.sharers() : kChunkRows) {}
};

/// Launches the kernel of one tile.
template <class Tile, class T, class Source>
void launch_wgmma(const Queue& queue, const char* name, WgmmaGemm<T, Source>& gemm, int64_t m, int64_t n,
                  int64_t slices, int cluster) {
  const int64_t tiles_m = (m + Tile::kM - 1) / Tile::kM, tiles_n = (n + Tile::kN - 1) / Tile::kN;
  const int tiles = Tile::kClusterSplitK ? 1 : cluster;  // per cluster
  const int64_t clusters = WgmmaGrid::clusters(tiles_m, tiles_n, tiles) * slices;
  WEFT_CHECK(clusters < int64_t{1} << 31, name, ": expected less than 2^31 tiles, got ", clusters);
  gemm.grid = WgmmaGrid(tiles_m, tiles_n, slices, tiles, cluster / tiles);
  if constexpr (!kLoadsAuxiliary<Tile, Source>) gemm.epilogue.loads_auxiliary = false;
  const int64_t resident =
      Tile::kClusterSplitK ? clusters : std::max(1, multiprocessors(queue) * Tile::kBlocksPerSm / cluster);
  const dim3 grid(static_cast<unsigned>(std::min(clusters, resident) * cluster));
  note_kernel_variant("sm90");
  launch_overlapped(queue, name, grid, dim3(Tile::kThreads), kSharedBytes<Tile, Source>,
                    dim3(static_cast<unsigned>(cluster)), &gemm_wgmma_kernel<Tile, T, Source>, gemm);
}

template <class T, class Source>
void launch_wgmma(const Queue& queue, const char* name, const WgmmaPlan& plan, WgmmaGemm<T, Source>& gemm, int64_t m,
                  int64_t n, int64_t slices) {
  using enum WgmmaPlan::Tile;
  if constexpr (requires { Source::kPlain; }) {  // ping-pong and cluster split-K tiles only
    if (plan.tile == cluster_split_k)
      return launch_wgmma<WgmmaTile<128, 128, 6, 1, 1, false, true>>(queue, name, gemm, m, n, slices, plan.cluster);
    return launch_wgmma<WgmmaTile<128, 128, 6, 1, 2, true>>(queue, name, gemm, m, n, slices, plan.cluster);
  } else {
    if constexpr (requires { requires Source::kTall; }) {
      if (plan.tile == tall)
        return launch_wgmma<WgmmaTile<256, 64, 4, 1, 2>>(queue, name, gemm, m, n, slices, plan.cluster);
    }
    if constexpr (requires { Source::kWide; }) {
      if (plan.tile == wide)
        return launch_wgmma<WgmmaTile<64, 192, 6, 1>>(queue, name, gemm, m, n, slices, plan.cluster);
    }
    if constexpr (requires { requires Source::kBroad; }) {
      if (plan.tile == broad)
        return launch_wgmma<WgmmaTile<64, 256, 5, 1>>(queue, name, gemm, m, n, slices, plan.cluster);
    }
    if constexpr (requires { Source::kPingPong; }) {
      if (plan.tile == ping_pong)
        return launch_wgmma<WgmmaTile<128, 128, 6, 1, 2, true>>(queue, name, gemm, m, n, slices, plan.cluster);
    }
    if (plan.tile == large)
      launch_wgmma<WgmmaTile<128, 256, 4, 1>>(queue, name, gemm, m, n, slices, plan.cluster);
    else if (plan.rows() == 128)
      launch_wgmma<WgmmaTile<128, 128, 6, 1>>(queue, name, gemm, m, n, slices, plan.cluster);
    else
      launch_wgmma<WgmmaTile<64, 64, 6, 2>>(queue, name, gemm, m, n, slices, plan.cluster);
  }
}

/// The epilogue of a result [slices, m, n]; TMA is used if the alignment of the lines allows. pitch: elements from row
/// to row, 0: dense.
template <class T, bool kChannels = false>
WgmmaEpilogue<T, false, kChannels> wgmma_epilogue(const char* name, const Epilogue<T>& to, int64_t m, int64_t n,
                                                  int64_t slices, int64_t pitch_z, int64_t pitch = 0) {
  if (pitch == 0) pitch = n;
  const int64_t size = to.wide_y ? 4 : static_cast<int64_t>(sizeof(T));
  const auto fits = [&](const void* data, int64_t unit) {
    return reinterpret_cast<uintptr_t>(data) % unit == 0 && pitch * size % unit == 0 &&
           (slices == 1 || pitch_z * size % unit == 0);
  };
  WgmmaEpilogue<T, false, kChannels> epilogue{};
  epilogue.to = to;
  epilogue.pitch_z = pitch_z;
  epilogue.pitch_row = pitch;
  epilogue.m = static_cast<int>(m);
  epilogue.n = static_cast<int>(n);
  epilogue.by_tma = fits(to.y, 16) && fits(to.pre, 16);
  epilogue.pairs = n % 2 == 0 && fits(to.y, 2 * size) && fits(to.pre, 2 * size) && fits(to.residual, 2 * size) &&
                   fits(to.saved, 2 * size);
  const auto map = [&](const void* data, int rows = 16) {
    return tiled_map(name, {data,
                            to.wide_y ? DType::f32 : dtype_of<T>,
                            3,
                            {n, m, slices},
                            {pitch * size, (slices == 1 ? m * pitch : pitch_z) * size},
                            {static_cast<int>(128 / size), rows, 1},
                            Swizzle::bytes128});
  };
  if (epilogue.by_tma) epilogue.y_map = map(to.y);
  if (epilogue.by_tma && to.pre != nullptr) epilogue.pre_map = map(to.pre);
  const void* const auxiliary = to.saved != nullptr ? to.saved : to.residual;
  const bool alone = to.pre == nullptr && !to.accumulate &&
                     (to.saved != nullptr ? to.residual == nullptr : to.activation == Activation::none);
  epilogue.loads_auxiliary = auxiliary != nullptr && alone && size == 2 && epilogue.by_tma && fits(auxiliary, 16);
  if (epilogue.loads_auxiliary) epilogue.auxiliary_map = map(auxiliary, kChunkRows);
  return epilogue;
}

}  // namespace weft::kernels::cuda
