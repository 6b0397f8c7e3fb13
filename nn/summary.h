// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"

namespace weft::nn {

/// A table of the layers that one forward of a zero image batch of shape `input` passes through, in evaluation and on
/// the model's device: path, kind, output shape, parameters, FLOPs (2 per multiply-add; norms, activations and pools
/// count as none), and the totals.
std::string summary(Module& model, const Shape& input);

}  // namespace weft::nn
