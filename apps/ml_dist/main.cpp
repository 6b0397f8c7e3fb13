// SPDX-License-Identifier: Apache-2.0
// MNIST in one process, by DDP, or by an optimizer that averages; see docs/workflows/ml_dist.md.
#include <filesystem>

#include "apps/ml_dist/trainer.h"
#include "train/resume.h"
#include "train/training_main.h"

namespace weft::ml_dist {
namespace {

int run(const std::string& program, int argc, char** argv) {
  Options options;
  if (!parse_options(program, argc, argv, options)) return train::kExitOk;
  if (options.mode == "base") options.parallel = "none";
  const dist::World ranks = train::join_ranks(options);
  const Mode mode = options.mode == "mpi"                       ? Mode::mpi
                    : options.mode == "ddp" || ranks.size() > 1 ? Mode::ddp
                                                                : Mode::base;
  const Sets sets(options);
  train::require_same_images(ranks, sets.train.get(), nullptr, sets.test.get());
  return train::exit_code(Trainer(options, mode, ranks, sets).run());
}

}  // namespace
}  // namespace weft::ml_dist

int main(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "mnist";
  return weft::train::training_main(program, [&] { return weft::ml_dist::run(program, argc, argv); });
}
