// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.cuh"

namespace weft::kernels::cuda {

/// The position of row m of a GEMM's result: a dense matrix, or a slice of columns of one.
struct RowsOut {
  int64_t base, pitch;
  int first_n;  ///< column 0 has this bias

  /// Offset in elements of row m's first column; negative: the row is not stored.
  __device__ int64_t row(int m) const { return base + m * pitch; }
};

/// One independent GEMM of a launch: a batch entry, a group, a share of k, or several of these. A *problem* is the
/// launch's kernel argument and offers `slice(z)` and `epilogue`; kChannels: the epilogue may have a norm and moments.
template <class A_, class B_, class Out_>
struct GemmSlice {
  using A = A_;
  using B = B_;
  using Out = Out_;
  A a;
  B b;
  Out out;
  int m, n;
  int k_begin, k_end;
};

/// Blocks of a launch: slices one after the other, each in panels of 8 rows of tiles, a panel column by column. The
/// blocks that run at a time are then about as many rows as columns, and share most of what they read in L2.
struct GemmGrid {
  static constexpr int kPanelRows = 8;
  int tiles_m, tiles_n;

  struct Position {
    int m, n, z;  ///< in tiles
  };
  __device__ Position position() const {
    const int z = static_cast<int>(blockIdx.x) / (tiles_m * tiles_n);
    const int tile = static_cast<int>(blockIdx.x) - z * tiles_m * tiles_n;
    const int first_row = tile / (kPanelRows * tiles_n) * kPanelRows;
    const int rows = min(kPanelRows, tiles_m - first_row), within = tile - first_row * tiles_n;
    return {first_row + within % rows, within / rows, z};
  }
};

}  // namespace weft::kernels::cuda
