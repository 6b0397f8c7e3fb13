// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The dtype in which two tensors meet: floating wins over integers, integers over bool; among floats f64 wins over
/// f32, f32 over bf16 and f16, and bf16 with f16 gives f32; among integers i64 wins over i32, i32 over u8.
DType promote(DType a, DType b);

/// The dtype of a tensor combined with a number: floats keep theirs; integers and bool become f32.
DType promote_with_number(DType dtype);

}  // namespace weft
