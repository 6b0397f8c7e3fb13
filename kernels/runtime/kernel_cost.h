// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// The minimum work of a kernel call.
struct KernelCost {
  /// Bytes of the call's tensors, each read or written once; tensors updated in place count both. A tensor that is
  /// read again after a full reduction counts twice (batch norm reads its input for the statistics and again to
  /// normalise).
  int64_t bytes = 0;
  double flop = 0;             ///< flops of a GEMM or convolution (tensor-core work); 0 for other kernels
  double arithmetic = 0;       ///< other kernels: approximate operations per element of the largest tensor, in total
  DType product = DType::f32;  ///< dtype of the GEMM's operands; f32 without a GEMM
};

/// The cost of a call. Convolutions count 2 R S C / groups operations per output element, padding included; GEMMs 2 K
/// per element; attention 4 N M D per head forward and 10 backward, regardless of masks. Epilogues do not count: bias,
/// activation, residual, statistics, softmax. A name that is not in the table (kernel_cost.cpp) costs the bytes of its
/// views.
KernelCost cost_of(const KernelCall& call);

/// Whether the table has an entry for the name.
bool has_cost(const char* name);

}  // namespace weft::kernels
