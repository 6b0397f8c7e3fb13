// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/contracts/copy.h"
#include "kernels/ladder/transpose/transpose.cuh"

// 6. Weft: a copy whose input's strides are exchanged, kernels/cuda/elementwise/copy.cu.
//
// A transpose is no operation of its own there: x.transpose() changes strides and moves nothing, and contiguous()
// copies. The copy kernel looks for the dimension along which each side is dense; where these differ, it turns tiles of
// 32 x 33 like step 4, for any dtype (as raw bits), any rank and any outer dimensions.
//
// Predicted: 80% of the bandwidth.

namespace weft::kernels::cuda::transpose_6 {

void run(const Queue& queue, const View& y, const View& x) {
  const Transpose p("transpose/6_weft", y, x);
  View turned = x;
  std::swap(turned.sizes[0], turned.sizes[1]);
  std::swap(turned.strides[0], turned.strides[1]);
  copy(queue, y, turned);
}

const Rung<run> rung("transpose/6_weft", "Weft's copy between any strides, any dtype");

}  // namespace weft::kernels::cuda::transpose_6
