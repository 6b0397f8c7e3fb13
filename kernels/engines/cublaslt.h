// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/engines/calls.h"

// Matmul by cuBLASLt: cublaslt_*.cpp, or no_cublaslt.cpp in a build without it.

namespace weft::kernels::vendor::cublaslt {

/// Empty where cuBLASLt can be used; else why not, and the cure.
const std::string& missing();
/// `cuBLASLt 130002`.
std::string version();

/// False for what the library has no layout or dtype for: our own kernel computes it then.
bool supports(const MatmulCall& call);

/// Ways that the heuristic offers for a supported call, at most four. Errors: those of the library.
int variants(const MatmulCall& call);
/// Enqueues the call. Errors: the library's, with the problem; there is no such variant.
void matmul(const MatmulCall& call, int variant);

}  // namespace weft::kernels::vendor::cublaslt
