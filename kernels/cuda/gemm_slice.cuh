// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.cuh"

namespace weft::kernels::WEFT_DEVICE {

/// Where row m of a GEMM's result lies: a dense matrix, or a slice of columns of one.
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

/// Blocks of a launch: tiles along n fastest (neighbours share a's lines in L2), then along m, then slices.
struct GemmGrid {
  int tiles_m, tiles_n;

  struct Place {
    int m, n, z;  ///< in tiles
  };
  __device__ Place place() const {
    const unsigned tile = blockIdx.x;
    const unsigned row = tile / tiles_n;
    return {static_cast<int>(row % tiles_m), static_cast<int>(tile % tiles_n), static_cast<int>(row / tiles_m)};
  }
};

}  // namespace weft::kernels::WEFT_DEVICE
