// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv1d.h"

#include "core/ops/conv2d.h"
#include "core/trace.h"

namespace weft {

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv1dOptions& options) {
  const OpScope scope("conv1d");
  WEFT_CHECK(x.defined() && x.dim() == 3, "conv1d: expected an input [N, L, C], got ", x);
  WEFT_CHECK(w.defined() && w.dim() == 3, "conv1d: expected a weight [O, R, C / groups], got ", w);
  return conv2d(x.unsqueeze(1), w.unsqueeze(1), bias,
                {.stride = {1, options.stride},
                 .padding = {0, options.padding},
                 .dilation = {1, options.dilation},
                 .groups = options.groups})
      .squeeze(1);
}

}  // namespace weft
