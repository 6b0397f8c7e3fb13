// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/ladder/ladder.cuh"

namespace weft::kernels::cuda::inline rungs {

/// y[N,M] = x[M,N] turned, both row-major.
struct Transpose {
  float* y;
  const float* x;
  int M, N;

  /// Errors: shapes that do not fit together; M or N not a multiple of `tile`.
  Transpose(const char* name, const View& y_, const View& x_, int tile = 1)
      : y(y_.as<float>()), x(x_.as<float>()), M(static_cast<int>(x_.sizes[0])), N(static_cast<int>(x_.sizes[1])) {
    WEFT_CHECK(x_.rank == 2 && y_.rank == 2 && y_.sizes[0] == N && y_.sizes[1] == M && x_.is_contiguous() &&
                   y_.is_contiguous() && x_.numel() < (int64_t{1} << 31),
               name, ": expected row-major y[N,M] and x[M,N] of less than 2^31 elements, got ", y_, " and ", x_);
    WEFT_CHECK(M % tile == 0 && N % tile == 0, name, ": expected M and N a multiple of ", tile, ", got M = ", M,
               ", N = ", N);
  }
};

}  // namespace weft::kernels::cuda::inline rungs
