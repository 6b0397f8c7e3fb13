// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv2d/conv2d_sm90.cuh"

// f32 runs as tf32: the caller has checked allow_tf32().

namespace weft::kernels::cuda {

template <>
bool conv2d_forward_wgmma<float>(const Queue& queue, const View& y, const View& x, const View& w,
                                 const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  return conv2d_forward_on_wgmma<float>(queue, y, x, w, epilogue, shape);
}

}  // namespace weft::kernels::cuda
