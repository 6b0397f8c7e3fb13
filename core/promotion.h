// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The dtype in which two tensors meet: floating wins over integers, integers over bool; among floats f64 wins over
/// f32, f32 over bf16 and f16, and bf16 with f16 gives f32; among integers i64 wins over i32, i32 over u8.
DType promote(DType a, DType b);

/// The dtype of a tensor combined with a number: floats keep theirs; i64 and i32 keep theirs where the number is whole,
/// u8 and bool count in i64 there; with a floating number all of them become f32.
DType promote(DType dtype, Number number);

/// Errors: an integer dtype that does not hold the number: a fraction, NaN, out of range. bool holds all, as != 0.
void check_holds(const char* op, DType dtype, Number number);

}  // namespace weft
