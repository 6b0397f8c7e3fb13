// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt.h"

namespace weft::kernels::vendor::cublaslt {

const std::string& missing() {
  static const std::string text =
      "this build has no cuBLASLt. Configure with -DWEFT_CUDA=ON and the toolkit's cuBLAS headers (cublasLt.h)";
  return text;
}
std::string version() { return "no cuBLASLt"; }
bool supports(const MatmulCall&) { return false; }
int variants(const MatmulCall&) { return 0; }
void matmul(const MatmulCall&, int) { fail("matmul: ", missing()); }

}  // namespace weft::kernels::vendor::cublaslt
