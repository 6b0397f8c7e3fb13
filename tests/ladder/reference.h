// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernels/ladder/ladder.h"

namespace weft::tests {

using Values = std::vector<double>;

/// The expected result of a ladder's steps, in f64; and the number of terms of each element's sum.
struct Reference {
  Values y;
  int64_t terms;
};
Reference reference(const kernels::ladder::Ladder& ladder, const kernels::ladder::Problem& problem,
                    const std::vector<Values>& inputs);

}  // namespace weft::tests
