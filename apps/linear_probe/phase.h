// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/options.h"
#include "apps/linear_probe/session.h"
#include "data/loader.h"
#include "nn/module.h"
#include "train/strategy.h"

namespace weft::linear_probe {

/// A phase's subject of training, and its settings.
struct PhaseOptions {
  double lr = 1e-3;
  double layer_decay = 1;    ///< see optim/layer_decay.h; 1: one rate
  std::string saved_prefix;  ///< a checkpoint has the weights whose names begin so: those that the phase changes
};

/// Where the steps of a phase come from.
struct PhaseData {
  std::shared_ptr<data::BatchQueue> training, validation;  ///< validation: null where this rank has no sample
  Tensor stand_in;  ///< an input that is none of the set's, for the steps of ranks that have none
  std::function<Tensor(const Tensor&)> prepare = [](const Tensor& x) {
    return x;
  };  ///< an input on its way to the model
};

/// Some epochs of a model with a fresh Adam, or the rest after the session's checkpoint; validation after each. Prints
/// the lines of the workflow. Trains `strategy`, whose module is `model`. False: the run is to stop, and its checkpoint
/// is written. All ranks call it.
bool run_phase(const Options& options, const dist::World& ranks, Session& session, train::Strategy& strategy,
               nn::Module& model, const PhaseOptions& how, PhaseData data);

}  // namespace weft::linear_probe
