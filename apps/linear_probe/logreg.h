// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "apps/linear_probe/logistic_regression.h"

namespace weft::linear_probe {

struct LogregOptions {
  int64_t classes = 0;
  int64_t grid = 45;  ///< values of C, 10^-6 … 10^5 at equal factors; one: C = 1
  int64_t max_iterations = 1000;
  DType dtype = DType::f64;  ///< of features and weights
  uint64_t seed = 0;         ///< which tenth is held out
};

/// One value of C.
struct LogregTrial {
  double c = 0;
  double accuracy = 0;  ///< on the held-out tenth, or on the validation part
  optim::LbfgsResult result;
};

struct LogregResult {
  LogregTrial chosen;   ///< trained without the held-out tenth
  LogregTrial refit;    ///< its C, trained on all, on the validation part
  LogisticModel model;  ///< of `refit`
};

/// How the DINOv2 paper evaluates frozen features on small sets (Oquab et al. 2023; dinov2/eval/log_regression.py
/// of their code): a random tenth of the training part is held out, a logistic regression is trained
/// on the rest for each C of the grid, the C with the most right answers on the tenth (the smallest of several) is
/// trained again on all and counted on the validation part. Every rank has all features and works on its share of the
/// rows. `report` is told of each trial. All ranks call it. Errors: fewer than two training examples.
LogregResult evaluate_logreg(const Features& training, const Features& validation, const dist::World& ranks,
                             const LogregOptions& options, const std::function<void(const LogregTrial&)>& report);

/// The values of C.
std::vector<double> logreg_grid(int64_t values);

}  // namespace weft::linear_probe
