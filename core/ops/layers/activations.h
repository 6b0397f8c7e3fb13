// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// Activations by other ops, element by element; x is floating. The more common ones are rows of
// kernels/contracts/unary_table.h. Errors: another dtype, and those named below.

/// min(max(x, 0), 6) (Krizhevsky 2010).
Tensor relu6(const Tensor& x);
/// min(max(x, low), high). Errors: low > high.
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
/// min(max(x / 6 + 1 / 2, 0), 1).
Tensor hardsigmoid(const Tensor& x);
/// x hardsigmoid(x) (Howard et al. 2019).
Tensor hardswish(const Tensor& x);
/// 1.0507 elu(x, 1.6733) (Klambauer et al. 2017).
Tensor selu(const Tensor& x);
/// Dropout for selu(): elements become selu's lower bound with probability p, and mean and variance stay 0 and 1
/// (Klambauer et al. 2017). Errors: p outside of 0 to 1.
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true);
/// x where x > 0, else alpha (e^(x / alpha) - 1) (Barron 2017). Errors: alpha is 0.
Tensor celu(const Tensor& x, double alpha = 1);
/// log(1 / (1 + e^-x)).
Tensor logsigmoid(const Tensor& x);
/// a sigmoid(b), where [a, b] = x along `dim` (Dauphin et al. 2016). Errors: an odd size.
Tensor glu(const Tensor& x, Integer dim = -1);
/// x where x > 0, else weight x, with a weight [1], or [C] for x [..., C] (He et al. 2015). Errors: other sizes.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x - bound above the bound, x + bound below -bound, else 0. Errors: a negative bound.
Tensor softshrink(const Tensor& x, double bound = 0.5);
/// x where |x| > bound, else 0.
Tensor hardshrink(const Tensor& x, double bound = 0.5);
/// x - tanh(x).
Tensor tanhshrink(const Tensor& x);
/// x where x > bound, else value.
Tensor threshold(const Tensor& x, double bound, double value);

}  // namespace weft
