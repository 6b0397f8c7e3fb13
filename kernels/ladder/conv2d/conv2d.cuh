// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/convert.cuh"
#include "kernels/ladder/ladder.cuh"

namespace weft::kernels::cuda::inline rungs {

/// y[n,h,w,o] = sum over r, s, c: x[n, h + r - R/2, w + s - R/2, c] f[o,r,s,c]. Stride 1, zeros around the images;
/// bf16. The steps see it as a product: pixels = N H W rows, O columns, K = R R C deep.
struct Conv2d {
  bf16* y;
  const bf16 *x, *f;
  int H, W, C, O, R, pixels, K;

  /// Errors: shapes that do not fit together; C or O not a multiple of these.
  Conv2d(const char* name, const View& y_, const View& x_, const View& f_, int c_multiple = 1, int o_multiple = 1)
      : y(y_.as<bf16>()),
        x(x_.as<bf16>()),
        f(f_.as<bf16>()),
        H(size(x_, 1)),
        W(size(x_, 2)),
        C(size(x_, 3)),
        O(size(f_, 0)),
        R(size(f_, 1)),
        pixels(size(x_, 0) * H * W),
        K(R * R * C) {
    WEFT_CHECK(x_.rank == 4 && y_.rank == 4 && f_.rank == 4 && y_.sizes[0] == x_.sizes[0] && y_.sizes[1] == H &&
                   y_.sizes[2] == W && y_.sizes[3] == O && f_.sizes[2] == R && f_.sizes[3] == C && R % 2 == 1,
               name, ": expected y[N,H,W,O], x[N,H,W,C] and f[O,R,R,C] with an odd R, got ", y_, ", ", x_, " and ", f_);
    for (const View* v : {&y_, &x_, &f_})
      WEFT_CHECK(v->is_contiguous() && v->numel() < (int64_t{1} << 31), name,
                 ": expected contiguous arrays of less than 2^31 elements, got ", *v);
    WEFT_CHECK(C % c_multiple == 0 && O % o_multiple == 0, name, ": expected C a multiple of ", c_multiple,
               " and O of ", o_multiple, ", got C = ", C, ", O = ", O);
  }

 private:
  static int size(const View& view, int d) { return static_cast<int>(view.sizes[d]); }
};

}  // namespace weft::kernels::cuda::inline rungs
