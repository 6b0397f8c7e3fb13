// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "core/tensor.h"

namespace weft {

/// The sum of products that `equation` names: a letter for each dimension of each tensor, then "->" and those of the
/// result; letters that the result lacks are summed over. `einsum("bhqd,bhkd->bhqk", {q, k})`. Without "->" the result
/// has the letters that stand once, in order of the alphabet. Tensors are multiplied from the left, two at a time, by
/// matmul. A letter twice in one tensor is its diagonal. "..." stands for the dimensions left over, which broadcast and
/// come first in a result without "->". Spaces count for nothing. Errors: a letter of two sizes, a letter of the result
/// that no tensor has; a number of terms other than of tensors.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors);

}  // namespace weft
