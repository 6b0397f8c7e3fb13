// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/fp8.h"

namespace weft::kernels::cuda {

/// A checked call of the contract.
struct Fp8MatmulCall {
  View y, pre, a, b, bias, a_scale, b_scale;
  Fp8MatmulArguments arguments;
};

/// The matmul on wgmma; returns false if the device has no wgmma or TMA cannot read the codes. Defined in
/// matmul_fp8_sm90.cu.
bool fp8_matmul_wgmma(const Queue& queue, const Fp8MatmulCall& call);

}  // namespace weft::kernels::cuda
