// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/runtime/queue.h"
#include "kernels/view.h"

// Linear algebra of the device cuda by cuSOLVER, and by cuBLAS's triangular solver.

namespace weft::kernels::vendor::cusolver {

/// Why they cannot be used, with the cure; empty where they can.
const std::string& missing();

// The contracts of kernels/contracts/linalg.h. A call waits for its stream, since the device finds errors: a captured
// graph cannot hold it. Errors: as on the CPU, in the same words; cuSOLVER refuses; OutOfMemory.

void svd(const Queue& queue, const View& u, const View& s, const View& vh, const View& x);
void eigh(const Queue& queue, const View& w, const View& v, const View& x);
void qr(const Queue& queue, const View& q, const View& r, const View& x);
void cholesky(const Queue& queue, const View& l, const View& x);
void lu(const Queue& queue, const View& lu, const View& parity, const View& x);
void solve(const Queue& queue, const View& y, const View& a, const View& b);
void triangular_solve(const Queue& queue, const View& y, const View& a, const View& b, bool upper);

}  // namespace weft::kernels::vendor::cusolver
