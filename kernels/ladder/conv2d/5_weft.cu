// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/conv2d.h"
#include "kernels/ladder/conv2d/conv2d.cuh"

// 5. Weft: kernels/cuda/conv2d/conv2d_forward.cu, the framework's product main loops with an operand that walks pixels.
//
// Any stride, padding, dilation, groups, bias and dtype; larger tiles; divisions by the image's sizes become
// multiplications (divider.cuh); 1 x 1 layers are plain products; depthwise layers, where there is no product to speak
// of, have a kernel of their own. The gradients are products of the same kind: the input's walks pixels of dy, the
// weight's sums over pixels.
//
// Predicted: the share that matmul_bf16's last step has of cuBLAS.

namespace weft::kernels::cuda::conv2d_5 {

void run(const Queue& queue, const View& y, const View& x, const View& f) {
  const Conv2d p("conv2d/5_weft", y, x, f);
  conv2d_forward(queue, y, x, f, View::none(), {.padding = {p.R / 2, p.R / 2}});
}

const Rung<run> rung("conv2d/5_weft", "Weft's kernel: any stride, padding, dilation, groups");

}  // namespace weft::kernels::cuda::conv2d_5
