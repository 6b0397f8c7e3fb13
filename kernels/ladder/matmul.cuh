// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/ladder/ladder.cuh"

namespace weft::kernels::cuda::inline rungs {

/// The tile that a step is built for: M, N and K must be multiples of these.
struct Tile {
  int m = 1, n = 1, k = 1;
};

/// y[M,N] = a[M,K] b[K,N], all row-major.
template <class T>
struct Matmul {
  T* y;
  const T *a, *b;
  int M, N, K;

  /// Errors: shapes that do not fit together, sizes beyond 2^31 elements, sizes that are not whole tiles.
  Matmul(const char* name, const View& y_, const View& a_, const View& b_, Tile tile = {})
      : y(y_.as<T>()), a(a_.as<T>()), b(b_.as<T>()), M(size(a_, 0)), N(size(b_, 1)), K(size(a_, 1)) {
    WEFT_CHECK(y_.rank == 2 && a_.rank == 2 && b_.rank == 2 && b_.sizes[0] == K && y_.sizes[0] == M && y_.sizes[1] == N,
               name, ": expected y[M,N], a[M,K] and b[K,N], got ", y_, ", ", a_, " and ", b_);
    for (const View* v : {&y_, &a_, &b_})
      WEFT_CHECK(v->is_contiguous() && v->numel() < (int64_t{1} << 31), name,
                 ": expected row-major matrices of less than 2^31 elements, got ", *v);
    WEFT_CHECK(M % tile.m == 0 && N % tile.n == 0 && K % tile.k == 0, name, ": expected M a multiple of ", tile.m,
               ", N of ", tile.n, " and K of ", tile.k, ", got M = ", M, ", N = ", N, ", K = ", K);
  }

 private:
  static int size(const View& view, int d) { return static_cast<int>(view.sizes[d]); }
};

}  // namespace weft::kernels::cuda::inline rungs
