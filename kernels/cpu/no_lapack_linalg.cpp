// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/linalg.h"

namespace weft::kernels::cpu {
namespace {

[[noreturn]] void no_lapack(const char* op) {
  fail(op, ": this build has no LAPACK. On Debian: apt-get install liblapacke-dev, then configure again");
}

}  // namespace

void svd(const Queue&, const View&, const View&, const View&, const View&) { no_lapack("svd"); }
void eigh(const Queue&, const View&, const View&, const View&) { no_lapack("eigh"); }
void qr(const Queue&, const View&, const View&, const View&) { no_lapack("qr"); }
void cholesky(const Queue&, const View&, const View&) { no_lapack("cholesky"); }
void lu(const Queue&, const View&, const View&, const View&) { no_lapack("lu"); }
void solve(const Queue&, const View&, const View&, const View&) { no_lapack("solve"); }
void triangular_solve(const Queue&, const View&, const View&, const View&, bool) { no_lapack("triangular_solve"); }

}  // namespace weft::kernels::cpu
