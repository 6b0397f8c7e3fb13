// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/matmul.h"

namespace weft::kernels::cpu {

/// oneDNN's matrix product for bf16 operands, y bf16 or f32, and for the f32 shapes where it beats gemm.h. Returns false
/// where oneDNN is not built in or has no faster kernel on this CPU; the caller then takes gemm.h.
bool dnnl_matmul(const View& y, const View& a, const View& b, const View& bias, const MatmulArguments& arguments);

}  // namespace weft::kernels::cpu
