// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_conv2d.h"

// Built without oneDNN (apt-get install libdnnl-dev): convolutions run through the plain loops of conv2d.cpp.

namespace weft::kernels::cpu {

bool dnnl_conv2d_forward(const View&, const View&, const View&, const View&, const Conv2dArguments&) { return false; }
bool dnnl_conv2d_backward_input(const View&, const View&, const View&, const Conv2dArguments&) { return false; }
bool dnnl_conv2d_backward_weight(const View&, const View&, const View&, const Conv2dArguments&) { return false; }

}  // namespace weft::kernels::cpu
