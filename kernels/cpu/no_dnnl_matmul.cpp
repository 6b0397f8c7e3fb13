// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_matmul.h"

namespace weft::kernels::cpu {

bool dnnl_matmul(const View&, const View&, const View&, const View&, const MatmulArguments&) { return false; }

bool dnnl_has_bf16() { return false; }

}  // namespace weft::kernels::cpu
