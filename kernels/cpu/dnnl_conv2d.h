// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"

namespace weft::kernels::cpu {

// oneDNN's convolutions. Each returns false where oneDNN is not built in or has nothing for this dtype on this CPU;
// the caller then takes its own loops.
bool dnnl_conv2d_forward(const View& y, const View& x, const View& w, const View& bias,
                         const Conv2dArguments& arguments);
bool dnnl_conv2d_backward_input(const View& dx, const View& dy, const View& w, const Conv2dArguments& arguments);
bool dnnl_conv2d_backward_weight(const View& dw, const View& dy, const View& x, const Conv2dArguments& arguments);

}  // namespace weft::kernels::cpu
