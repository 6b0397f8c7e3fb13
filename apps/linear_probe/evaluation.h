// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/linear_probe/feature_file.h"
#include "apps/linear_probe/options.h"
#include "train/signals.h"

namespace weft::linear_probe {

/// --eval logreg: evaluate_logreg() with a line for each C on stdout, `logreg.safetensors` (weight and bias of the
/// classifier, f32) and `summary.json` in the run folder. All ranks call it. Errors: a signal has asked to stop, which
/// is looked at after each C; nothing is kept.
void run_logreg(const Options& options, const FeatureSets& features, int64_t classes, const dist::World& ranks,
                const train::Signals& signals);

}  // namespace weft::linear_probe
