// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// The least work of a kernel call.
struct KernelCost {
  /// The bytes of its tensors, each read or written once: both for those that are updated in place, twice for those
  /// that no chip can hold until the sums over all of them are known (batch norm reads its input for the statistics and
  /// again to normalise).
  int64_t bytes = 0;
  double flop = 0;             ///< of a product or convolution: what tensor cores do; 0 for the others
  double arithmetic = 0;       ///< of a kernel without a product, roughly: a count per element of the largest tensor
  DType product = DType::f32;  ///< what the product multiplies; f32 without one
};

/// The cost of a call. Convolutions count 2 R S C / groups operations per output element, padding included; products
/// 2 K per element; attention 4 N M D per head forward and 10 backward, whatever is masked; none of them what is done
/// to the sums: bias, activation, residual, statistics, softmax. A name that the table (kernel_cost.cpp) does not know
/// costs the bytes of its views.
KernelCost cost_of(const KernelCall& call);

/// True where the table has an entry.
bool has_cost(const char* name);

}  // namespace weft::kernels
