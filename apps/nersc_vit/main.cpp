// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "apps/nersc_vit/trainer.h"
#include "core/choose_device.h"
#include "train/training_main.h"

namespace weft::nersc_vit {
namespace {

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return train::kExitOk;
  const dist::World ranks = dist::init({.backend = options.backend, .device = options.device});
  const int64_t stages = options.pipeline_parallel_size;
  const std::string all = str(ranks.size(), ranks.size() == 1 ? " rank" : " ranks");
  if (ranks.size() % stages != 0)
    throw train::UsageError(str("--pipeline_parallel_size: ", stages, " does not divide ", all));
  if (ranks.size() / stages % options.row_parallel_size != 0)
    throw train::UsageError(str("--row_parallel_size: ", options.row_parallel_size, " does not divide ",
                                stages == 1 ? all : str(ranks.size() / stages, " ranks of each stage")));
  OutLog log;
  Trainer trainer(options, ranks,
                  dist::Grid(ranks.group(), static_cast<int>(options.row_parallel_size), static_cast<int>(stages)),
                  log);
  if (options.dry_run) {
    if (ranks.is_first())
      std::cout << "device  " << weft::describe(ranks.device()) << '\n'
                << trainer.describe() << "\ndry run: would train this; nothing is written" << std::endl;
    return train::kExitOk;
  }
  return train::exit_code(trainer.run());
}

}  // namespace
}  // namespace weft::nersc_vit

int main(int argc, char** argv) {
  return weft::train::training_main("train_vit", [&] { return weft::nersc_vit::run(argc, argv); });
}
