// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How the rows of a bag become one.
enum class Bag { sum, mean, max };

struct EmbeddingBagOptions {
  Bag mode = Bag::mean;
  int64_t padding = -1;  ///< indices of this value count for nothing; -1: none
};

/// For each bag the sum, mean or maximum of the rows of `weight` [count, size] at its indices: index [bags, length]
/// integers, result [bags, size]. A bag without indices is 0. Errors: sizes that do not fit; on the CPU an index
/// outside of the table (NaN on other devices).
Tensor embedding_bag(const Tensor& weight, const Tensor& index, const EmbeddingBagOptions& options = {});
/// As above for bags of any length: index [n]; bag b holds index[offsets[b]] to before index[offsets[b + 1]], the last
/// bag all the rest. The host reads the offsets. Errors: those above; offsets that do not ascend from 0; mode max.
Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets,
                     const EmbeddingBagOptions& options = {});

}  // namespace weft
