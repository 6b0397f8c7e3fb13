// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/matmul.h"

namespace weft::kernels::cpu {

/// oneDNN's matrix product, for bf16 operands (y bf16 or f32). Returns false where oneDNN is not built in or has no
/// fast kernel for the operands on this CPU; the caller then converts and takes gemm.h.
bool dnnl_matmul(const View& y, const View& a, const View& b, const View& bias, const MatmulArguments& arguments);

}  // namespace weft::kernels::cpu
