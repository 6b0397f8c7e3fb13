// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/run.h"

#include <iostream>

#include "apps/jsc/elapsed.h"
#include "apps/jsc/slurm_start.h"
#include "apps/jsc/trainer.h"
#include "apps/support/device.h"
#include "apps/support/exit.h"

namespace weft::jsc {
namespace {

void describe(std::ostream& out, const support::Ranks& ranks, const Pictures& pictures, const Trainer& trainer) {
  out << "device  " << support::describe(ranks.device()) << '\n'
      << pictures.describe() << "model   " << trainer.describe() << std::endl;
}

/// Everything but training: the environment is read, other ranks are not waited for.
int dry_run(const Options& options, bool alone) {
  const support::Ranks ranks({.alone = true, .device = options.device});
  const Pictures pictures(options, ranks);
  const Trainer trainer(options, ranks, pictures);
  std::cout << "ranks   " << (alone ? "alone" : describe_place()) << '\n';
  describe(std::cout, ranks, pictures, trainer);
  std::cout << "would train " << options.epochs << " epochs with batches of " << options.batch_size << ", log to "
            << Trainer::kLogs << "/version_N and write " << Trainer::kCheckpoint << std::endl;
  return support::kExitOk;
}

}  // namespace

int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv) {
  return support::guarded_main(program, [&] {
    const Stopwatch watch;
    Options options;
    if (!parse_options(program, purpose, argc, argv, options)) return support::kExitOk;
    if (!alone) choose_port();
    if (options.dry_run) return dry_run(options, alone);
    const support::Ranks ranks({.alone = alone, .device = options.device});
    const Pictures pictures(options, ranks);
    Trainer trainer(options, ranks, pictures);
    if (ranks.is_first()) {
      std::cerr << "ranks   " << ranks.describe() << '\n';
      describe(std::cerr, ranks, pictures, trainer);
    }
    trainer.run();
    if (ranks.is_first()) std::cout << elapsed_line(watch.seconds()) << std::endl;
    return support::kExitOk;
  });
}

}  // namespace weft::jsc
