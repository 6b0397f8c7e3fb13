// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv2d/conv2d_sm90.cuh"
#include "kernels/cuda/conv2d/conv2d_stem_sm90.cuh"
#include "kernels/cuda/conv2d/conv2d_strided_sm90.cuh"

namespace weft::kernels::cuda {

template <>
bool conv2d_forward_wgmma<f16>(const Queue& queue, const View& y, const View& x, const View& w,
                               const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  return conv2d_forward_on_wgmma<f16>(queue, y, x, w, epilogue, shape) ||
         conv2d_forward_stem_on_wgmma<f16>(queue, y, x, w, epilogue, shape);
}

template <>
bool conv2d_backward_input_wgmma<f16>(const Queue& queue, const View& dx, const View& dy, const View& w,
                                      const View& dx_in, const Conv2dShape& shape) {
  if (shape.stride != Size2d{1, 1}) return conv2d_backward_strided_input_on_wgmma<f16>(queue, dx, dy, w, dx_in, shape);
  return conv2d_backward_input_on_wgmma<f16>(queue, dx, dy, w, dx_in, shape);
}

template <>
bool conv2d_backward_weight_wgmma<f16>(const Queue& queue, const View& dw, const View& dy, const View& x,
                                       const Conv2dShape& shape) {
  return conv2d_backward_weight_on_wgmma<f16>(queue, dw, dy, x, shape) ||
         conv2d_backward_weight_stem_on_wgmma<f16>(queue, dw, dy, x, shape);
}

}  // namespace weft::kernels::cuda
