// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/options.h"
#include "dist/group/world.h"
#include "optim/lbfgs.h"
#include "train/signals.h"

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

struct LogregOptions {
  int64_t classes = 0;
  int64_t grid = 45;  ///< values of C, 10^-6 … 10^5 at equal factors; one: C = 1
  int64_t max_iterations = 1000;
  DType dtype = DType::f64;  ///< dtype of features and weights
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
  LogisticModel model;  ///< model of `refit`
};

/// How the DINOv2 paper evaluates frozen features on small sets (Oquab et al. 2023; dinov2/eval/log_regression.py
/// of their code): a random tenth of the training part is held out, and a logistic regression is trained on the rest
/// for each C of the grid. The C with the most right answers on the tenth (the smallest of several) is trained again on
/// all, and counted on the validation part. Every rank has all features and works on its share of the
/// rows. `report` is told of each trial. All ranks call it. Errors: fewer than two training examples.
LogregResult evaluate_logreg(const Features& training, const Features& validation, const dist::World& ranks,
                             const LogregOptions& options, const std::function<void(const LogregTrial&)>& report);

/// The values of C.
std::vector<double> logreg_grid(int64_t values);

/// --eval logreg: evaluate_logreg() with a line for each C on stdout, `logreg.safetensors` (weight and bias of the
/// classifier, f32) and `summary.json` in the run folder. All ranks call it. Errors: a signal has asked to stop, which
/// is looked at after each C; nothing is kept.
void run_logreg(const Options& options, const FeatureSets& features, const std::vector<std::string>& classes,
                const dist::World& ranks, const train::Signals& signals);

}  // namespace weft::linear_probe
