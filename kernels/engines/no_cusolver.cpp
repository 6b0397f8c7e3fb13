// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cusolver.h"
#include "kernels/error.h"

namespace weft::kernels::vendor::cusolver {

const std::string& missing() {
  static const std::string text =
      "this build has no cuSOLVER. Configure with -DWEFT_CUDA=ON and the toolkit's cuSOLVER headers (cusolverDn.h)";
  return text;
}
void svd(const Queue&, const View&, const View&, const View&, const View&) { fail("svd: ", missing()); }
void eigh(const Queue&, const View&, const View&, const View&) { fail("eigh: ", missing()); }
void qr(const Queue&, const View&, const View&, const View&) { fail("qr: ", missing()); }
void cholesky(const Queue&, const View&, const View&) { fail("cholesky: ", missing()); }
void lu(const Queue&, const View&, const View&, const View&) { fail("lu: ", missing()); }
void solve(const Queue&, const View&, const View&, const View&) { fail("solve: ", missing()); }
void triangular_solve(const Queue&, const View&, const View&, const View&, bool) {
  fail("triangular_solve: ", missing());
}

}  // namespace weft::kernels::vendor::cusolver
