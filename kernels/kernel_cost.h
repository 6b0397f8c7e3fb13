// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// What a kernel call must do at least: the bytes that its tensors hold, each read or written once (both for those that
/// are updated in place), and the floating-point operations of a product. `flop` is 0 for kernels that memory bounds.
struct KernelCost {
  int64_t bytes = 0;
  double flop = 0;
};

/// The cost of a call. Convolutions count 2 R S C / groups operations per output element, padding included; products
/// 2 K per element. A name that the table (kernel_cost.cpp) does not know costs the bytes of its views.
KernelCost cost_of(const KernelCall& call);

/// True where the table has an entry.
bool has_cost(const char* name);

}  // namespace weft::kernels
