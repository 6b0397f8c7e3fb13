// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How gelu's normal distribution function is computed.
enum class Gelu { erf, tanh };

/// y = x Phi(x) (Hendrycks and Gimpel 2016), Phi by the error function, or by the tanh formula of the paper.
Tensor gelu(const Tensor& x, Gelu approximate = Gelu::erf);

}  // namespace weft
