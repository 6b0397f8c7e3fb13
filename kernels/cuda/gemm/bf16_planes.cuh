// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/matmul_call.cuh"

namespace weft::kernels::cuda {

/// Whether WEFT_F32 asks for bf16 planes (kernels/runtime/f32_products.h) and the call is a product of f32 of at least
/// kPlanesLeast rows and columns; smaller ones gain nothing by tensor cores and stay exact.
bool runs_by_planes(const MatmulCall& call);
inline constexpr int64_t kPlanesLeast = 128;

/// Runs the call on the kernels of bf16. Each factor is a sum of planes: x0 is x rounded to bf16, x1 the rest rounded
/// to bf16, x2 the rest of that.
///   split3:  a0 b0 + a0 b1 + a1 b0
///   split6:  split3 + a1 b1 + a0 b2 + a2 b0.
/// A factor's planes lie along k, behind each other, and the GEMM runs once.
/// An infinity times a plane that is zero is NaN, so a result may be NaN where f32 has an infinity.
/// `call.row_sums` are sums of f32. Scratch memory: 2 bytes per term and element of a and b.
void matmul_by_planes(const Queue& queue, MatmulCall call);

}  // namespace weft::kernels::cuda
