// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include "dist/group/process_group.h"

namespace weft::dist {

/// output[i] = op over inputs[0][i], inputs[1][i], … in this order; avg divides by the number of inputs. Sums of f32,
/// f64 and integers are kept in their own type, those of bf16 and f16 in f32 and rounded once. max and min of a NaN are
/// NaN. `output` may be one of the inputs. This is the order of every host backend: elements do not know where in a
/// tensor they lie, so the bits of a sum depend on the ranks' values alone.
void reduce(DType dtype, ReduceOp op, void* output, std::span<const void* const> inputs, size_t count);

/// output[i] = factor * input[i], rounded to the dtype; floating dtypes. The two may be the same.
void scale(DType dtype, void* output, const void* input, double factor, size_t count);

}  // namespace weft::dist
