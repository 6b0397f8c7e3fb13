// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/linear_probe/features.h"
#include "dist/group/world.h"
#include "optim/lbfgs.h"

namespace weft::linear_probe {

struct LogisticOptions {
  double c = 1;  ///< C: the larger, the weaker is the pull towards 0
  int64_t classes = 0;
  int64_t max_iterations = 1000;
  double loss_tolerance = 1e-12;  ///< see optim::LbfgsOptions
};

/// A linear classifier and how it was found.
struct LogisticModel {
  Tensor weight, bias;  ///< [classes, width], [classes]
  optim::LbfgsResult result;
};

/// The least of C sum_i CE(W x_i + b, y_i) + |W|^2 / 2 over all ranks' examples, from W = 0, b = 0 by L-BFGS: the
/// multinomial logistic regression of scikit-learn and cuML with penalty l2. Each rank gives its own examples (values
/// [n, width], f32 or f64, in which all is computed); sums of loss and gradient travel, and all ranks get the same
/// model, to the last bit. All ranks call it. Errors: no examples at all, C not above 0, labels outside the classes.
LogisticModel fit_logistic_regression(const Features& own, const dist::World& ranks, const LogisticOptions& options);

/// Right answers of a model on this rank's examples.
int64_t count_right(const LogisticModel& model, const Features& own);

}  // namespace weft::linear_probe
