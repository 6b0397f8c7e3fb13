// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <memory>

#include "apps/train_image/trainer.h"
#include "core/choose_device.h"
#include "io/safetensors.h"
#include "train/training_main.h"

namespace weft::train_image {
namespace {

void describe(Experiment& e) {
  if (!e.ranks.is_first()) return;
  if (e.ranks.size() > 1)
    std::cout << "ranks   " << e.ranks.describe() << ", " << e.strategy->describe() << "; " << e.options.batch_size
              << " images each per step, " << e.global_batch() << " together\n";
  std::cout << "device  " << weft::describe(e.device) << '\n';
  if (e.train_set) std::cout << "train   " << e.train_set->describe() << '\n';
  std::cout << "val     " << e.val_set->describe() << '\n';
  if (!e.class_note.empty()) std::cout << "classes " << e.class_note << '\n';
  if (e.options.eval_only) std::cout << "pixels  normalised as those of " << e.pixels.origin << '\n';
  std::cout << "model   " << e.options.model << ", " << nn::parameter_count(*e.model) << " parameters, input "
            << e.height << 'x' << e.width << 'x' << e.channels << ", " << e.options.precision << '\n';
  std::cout << e.summary;
  std::cout.flush();
  if (e.options.warmup >= static_cast<double>(e.options.epochs) && !e.options.eval_only)
    std::cerr << str("warning: --warmup ", e.options.warmup, " is not shorter than the run of ", e.options.epochs,
                     " epochs: it is cut to end with the last step\n")
              << std::flush;
}

/// The plan of the run.
std::string plan(const Experiment& e) {
  const Options& o = e.options;
  if (o.eval_only) return str("dry run: would evaluate ", e.val_set->size(), " images");
  return str("dry run: would train ", o.epochs, " epochs of ", e.steps_per_epoch(), " steps, ", e.global_batch(),
             " images each, ", o.optimizer, " at ", o.lr, ", schedule ", o.schedule, ", and write ", o.out);
}

Evaluation evaluation_of(Experiment& e) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(
      e.ranks.is_first() ? nullptr : std::fopen("/dev/null", "w"), std::fclose);
  train::ProgressOptions where;
  where.out = nowhere.get();
  train::Progress progress(where);
  return evaluate(e, progress);
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  options.export_file = ranks.first_says(options.export_file, "--export");  // all ranks gather for the one that writes
  Experiment experiment(options, ranks);
  describe(experiment);
  StateDict weights;  // for --export
  if (options.dry_run) {
    if (ranks.is_first()) std::cout << plan(experiment) << std::endl;
    return train::kExitOk;
  }
  if (options.eval_only) {
    const Evaluation result = evaluation_of(experiment);
    if (ranks.is_first())
      std::printf("val loss %.4f accuracy %.2f%% (%lld of %lld), %.0f images/s\n", result.loss, 100 * result.accuracy,
                  static_cast<long long>(result.correct), static_cast<long long>(result.images),
                  result.images_per_second);
    WEFT_CHECK(std::fflush(stdout) == 0, "standard output: the result could not be written");
    if (!options.export_file.empty()) weights = experiment.strategy->model_state();
  } else {
    if (ranks.is_first()) std::cout << "run     " << options.out << std::endl;
    Trainer trainer(experiment);
    const train::RunEnd end = trainer.run();
    if (end != train::RunEnd::finished) return train::exit_code(end);
    if (!options.export_file.empty()) weights = trainer.weights();
  }
  if (!options.export_file.empty()) {
    if (!ranks.is_first()) return train::kExitOk;
    write_safetensors(options.export_file, weights, experiment.texts());
    std::cout << "wrote   " << options.export_file << std::endl;
  }
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::train_image

int main(int argc, char** argv) {
  return weft::train::training_main("train_image", [&] { return weft::train_image::run(argc, argv); });
}
