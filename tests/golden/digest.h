// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"

namespace weft::golden {

/// In f64 only the rounding of the file to f32 is left.
inline double tolerance_of(DType dtype) { return dtype == DType::f64 ? 1e-6 : kTolerance; }

/// The 10 numbers against PyTorch's: each to the tolerance times the tensor's norm. The product with the hashed factor
/// contains the factor's norm, about sqrt(numel / 3); independent errors use a small part.
inline void expect_digest(const Tensor& got, const Tensor& expected, uint32_t seed, const std::string& what) {
  const std::vector<double> mine = digest(as_pytorch(got), seed), theirs = expected.to_vector<double>();
  const double allowed = tolerance_of(got.dtype()) * theirs[0] + 1e-6;
  EXPECT_NEAR(mine[0], theirs[0], allowed) << what << ": norm";
  EXPECT_NEAR(mine[1], theirs[1], 4 * allowed) << what << ": product";
  for (size_t i = 2; i < theirs.size(); ++i) EXPECT_NEAR(mine[i], theirs[i], allowed) << what << ": element " << i - 2;
}

}  // namespace weft::golden
