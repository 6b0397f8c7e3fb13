// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/run.h"

#include <iostream>

#include "apps/jsc/course.h"
#include "apps/jsc/trainer.h"
#include "apps/support/run_flags.h"
#include "core/choose_device.h"
#include "train/training_main.h"

namespace weft::jsc {

bool parse_options(const std::string& program, const std::string& purpose, int argc, char** argv, Options& o) {
  support::Flags flags(program, purpose);
  flags.group("Data and model");
  flags.add("data", o.data,
            "folder with train/CLASS/*.jpg and val/CLASS/*.jpg (and test/…), or hdf5:FILE, packed:FILE, as `pack` "
            "writes them; `tools/fetch_data hymenoptera data` brings the ants and bees to data/hymenoptera");
  flags.add_choice("backbone", o.backbone, {"resnet18", "resnet50"},
                   "resnet50: the later course's, which begins at random weights here");
  support::add_run_flags(flags, o, "epochs batch-size seed device workers dry-run");
  flags.example(program + " --data data/hymenoptera --epochs 10 --batch-size 8");
  if (program == "ddp") flags.example("srun -n 4 ddp");
  if (!flags.parse(argc, argv)) return false;
  o.toml = flags.toml();
  return true;
}

namespace {

void describe(std::ostream& out, const dist::World& ranks, const Images& images, const Trainer& trainer) {
  out << "device  " << weft::describe(ranks.device()) << '\n'
      << images.describe() << "model   " << trainer.describe() << std::endl;
}

/// Everything but training: the environment is read, other ranks are not waited for.
int dry_run(const Options& options, bool alone) {
  const dist::World ranks = dist::init({.alone = true, .device = options.device});
  const Images images(options, ranks);
  const Trainer trainer(options, ranks, images);
  std::cout << "ranks   " << (alone ? "alone" : describe_place()) << '\n';
  describe(std::cout, ranks, images, trainer);
  std::cout << "would train " << options.epochs << " epochs with batches of " << options.batch_size << ", log to "
            << Trainer::kLogs << "/version_N and write " << Trainer::kCheckpoint << std::endl;
  return train::kExitOk;
}

}  // namespace

int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv) {
  return train::training_main(program, [&] {
    const Stopwatch watch;
    Options options;
    if (!parse_options(program, purpose, argc, argv, options)) return train::kExitOk;
    if (!alone) choose_port();
    if (options.dry_run) return dry_run(options, alone);
    if (alone) options.parallel = "none";
    const dist::World ranks = train::join_ranks(options);
    const Images images(options, ranks);
    Trainer trainer(options, ranks, images);
    if (ranks.is_first()) {
      std::cerr << "ranks   " << ranks.describe() << '\n';
      describe(std::cerr, ranks, images, trainer);
    }
    const train::RunEnd end = trainer.run();
    if (ranks.is_first()) std::cout << elapsed_line(watch.seconds()) << std::endl;
    return train::exit_code(end);
  });
}

}  // namespace weft::jsc
