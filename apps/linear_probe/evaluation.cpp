// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/evaluation.h"

#include <cstdio>
#include <iostream>

#include "apps/linear_probe/logreg.h"
#include "io/safetensors.h"
#include "train/run_folder.h"
#include "train/stopwatch.h"

namespace weft::linear_probe {
namespace {

/// `logreg C 3.16228e-06: held-out accuracy 12.34, loss 4.60517, 17 iterations`.
std::string line(const LogregTrial& trial, const char* part) {
  char text[160];
  std::snprintf(text, sizeof text, "logreg C %g: %s accuracy %.4f, loss %.6g, %lld iterations", trial.c, part,
                100 * trial.accuracy, trial.result.loss, static_cast<long long>(trial.result.iterations));
  // At the limit of iterations the loss is above its minimum, and the more so the weaker the penalty is.
  return str(text, trial.result.end == optim::LbfgsEnd::iterations ? " (the limit)" : "");
}

}  // namespace

void run_logreg(const Options& options, const FeatureSets& features, int64_t classes, const dist::World& ranks,
                const train::Signals& signals) {
  const train::Stopwatch watch;
  const auto say = [&](const std::string& text) {
    if (ranks.is_first()) std::cout << text << std::endl;
  };
  const LogregResult result =
      evaluate_logreg(features.training, features.validation, ranks,
                      {.classes = classes,
                       .grid = options.logreg_values,
                       .max_iterations = options.logreg_iterations,
                       .dtype = options.logreg_precision == "f64" ? DType::f64 : DType::f32,
                       .seed = static_cast<uint64_t>(options.seed)},
                      [&](const LogregTrial& trial) {
                        say(line(trial, "held-out"));
                        WEFT_CHECK(ranks.max(signals.stop_requested(), "stop") == 0, "stopped by a signal after C ",
                                   trial.c, "; the evaluation begins again");
                      });
  say(line(result.refit, "validation"));
  if (!ranks.is_first()) return;
  const train::RunFolder folder(options.out);
  StateDict classifier;
  classifier.tensors = {{"weight", result.model.weight.to(DType::f32)}, {"bias", result.model.bias.to(DType::f32)}};
  write_safetensors(folder.file("logreg.safetensors"), classifier);
  folder.write_summary({{"logreg_accuracy", result.refit.accuracy},
                        {"logreg_c", result.refit.c},
                        {"logreg_held_out_accuracy", result.chosen.accuracy},
                        {"logreg_iterations", result.refit.result.iterations},
                        {"logreg_seconds", watch.seconds()}});
}

}  // namespace weft::linear_probe
