// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/matmul.h"

namespace weft::kernels::cpu {

/// oneDNN's matrix product for bf16 operands, y bf16 or f32, and for the f32 shapes where it beats gemm.h. Returns
/// false where oneDNN is not built in or has no faster kernel on this CPU; the caller then takes gemm.h.
bool dnnl_matmul(const View& y, const View& a, const View& b, const View& bias, const MatmulArguments& arguments);

/// Whether oneDNN is there and has bf16 kernels for this CPU.
bool dnnl_has_bf16();
/// Says once, on stderr, that bf16 saves no time, unless dnnl_has_bf16(): where bf16 work is done in f32.
void note_bf16_in_f32();

}  // namespace weft::kernels::cpu
