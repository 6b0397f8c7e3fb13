// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernels/ladder/ladder.h"

namespace weft::tests {

using Values = std::vector<double>;

/// What the steps of a ladder must compute, in f64; and over how many terms an element of it is a sum.
struct Reference {
  Values y;
  int64_t terms;
};
Reference reference(const kernels::ladder::Ladder& ladder, const kernels::ladder::Problem& problem,
                    const std::vector<Values>& inputs);

}  // namespace weft::tests
