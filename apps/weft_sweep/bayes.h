// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "apps/weft_sweep/sweep.h"

namespace weft::weft_sweep {

/// The next point of a Bayesian search, by Optuna's tree-structured Parzen estimator (Bergstra et al., "Algorithms for
/// Hyper-Parameter Optimization", NeurIPS 2011): it models where the better of the points so far lie and where the
/// others do; the first ten are drawn at random. A function of the seed and of the points with their values. Points
/// that are running count as bad ones, so that several at a time differ. None if it finds no new point. Errors: no
/// python3, no Optuna of version 3 or newer.
std::optional<Point> next_point(const Sweep& sweep);

}  // namespace weft::weft_sweep
