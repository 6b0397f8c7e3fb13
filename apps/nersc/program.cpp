// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/program.h"

#include <iostream>

#include "apps/nersc/trainer.h"
#include "core/choose_device.h"
#include "train/exit.h"

namespace weft::nersc {

int train(int argc, char** argv, bool several) {
  return train::guarded_main(several ? "train_multi_gpu" : "train_single_gpu", [&] {
    Options options;
    if (!parse_options(argc, argv, several, options)) return train::kExitOk;
    const Config config = read_config(options);
    // One GPU means alone, also in an allocation of several tasks.
    const dist::World ranks = dist::init({.alone = !several, .backend = options.backend, .device = options.device});
    if (several)
      std::cout << str("running on rank ", ranks.rank(), " with world size ", ranks.size(), "\n") << std::flush;
    Trainer trainer(options, config, ranks);
    if (options.dry_run) {
      if (ranks.is_first())
        std::cout << trainer.describe() << "device  " << weft::describe(ranks.device())
                  << "\ndry run: would train this; nothing is written\n";
      return train::kExitOk;
    }
    return train::exit_code(trainer.run());
  });
}

}  // namespace weft::nersc
