// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.cuh"

namespace weft::kernels::cuda {

/// Addresses the rows of a GEMM's result: a dense matrix, or a slice of its columns.
struct RowsOut {
  int64_t base, pitch;
  int first_n;  ///< index of column 0's bias

  /// Offset in elements of row m's first column; negative: the row is not stored.
  __device__ int64_t row(int m) const { return base + m * pitch; }
};

/// One independent GEMM of a launch: a batch element, a group, a split-K slice, or several of these. A *problem* is the
/// launch's kernel argument and offers `slice(z)` and `epilogue`; kChannels: the epilogue may have a norm and batch
/// statistics.
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

/// The order of a launch's blocks: slice by slice, each in panels of 8 rows of tiles, a panel column by column.
/// Concurrent blocks then cover about as many tile rows as columns, and share most loads in L2.
struct GemmGrid {
  static constexpr int kPanelRows = 8;
  int tiles_m, tiles_n;

  struct Position {
    int m, n, z;  ///< m and n in tiles, z a slice
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
