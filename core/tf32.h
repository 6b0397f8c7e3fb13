// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/tf32.h"

namespace weft {

/// weft::set_allow_tf32(true): products and convolutions of f32 tensors on a GPU round their factors to tf32 and run on
/// tensor cores (docs/engines.md). Off unless this or WEFT_ALLOW_TF32=1 says otherwise; for the whole process.
using kernels::allow_tf32;
using kernels::set_allow_tf32;

}  // namespace weft
