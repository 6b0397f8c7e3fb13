// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// x, y, dy, dx: contiguous [N, P, C], P positions, one floating dtype; groups of C / G neighbouring channels. weight,
// bias, dweight, dbias [C]; mean, invstd [N, G]: f32 (f64 for f64 x). Wu and He 2018.

/// y = (x - mean) invstd weight + bias, mean and 1/sqrt(variance + eps) over the positions and channels of a group of
/// one sample; weight and bias may be none.
WEFT_KERNEL(group_norm_forward, const Queue& queue, const View& y, const View& mean, const View& invstd, const View& x,
            const View& weight, const View& bias, double eps);

/// The gradients of x and, unless none, of weight and bias.
WEFT_KERNEL(group_norm_backward, const Queue& queue, const View& dx, const View& dweight, const View& dbias,
            const View& dy, const View& x, const View& weight, const View& mean, const View& invstd);

/// The sizes of one call, checked.
struct GroupNormShape {
  int64_t N, P, C, G;
  int64_t channels() const { return C / G; }  ///< the width of a group

  GroupNormShape(const char* op, const View& x, const View& like, const View& mean, const View& invstd) {
    WEFT_CHECK(x.rank == 3 && x.is_contiguous() && like.is_contiguous() && like.same_sizes(x) && like.dtype == x.dtype,
               op, ": expected two dense [N, P, C] of one dtype, got ", x, " and ", like);
    WEFT_CHECK(mean.rank == 2 && invstd.same_sizes(mean) && mean.sizes[0] == x.sizes[0] && mean.sizes[1] > 0 &&
                   x.sizes[2] % mean.sizes[1] == 0,
               op, ": expected a mean and a deviation for each sample and group of ", x, ", got ", mean, " and ",
               invstd);
    N = x.sizes[0], P = x.sizes[1], C = x.sizes[2], G = mean.sizes[1];
  }
};

}  // namespace weft::kernels
