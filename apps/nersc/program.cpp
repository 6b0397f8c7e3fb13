// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/program.h"

#include <iostream>

#include "apps/nersc/trainer.h"
#include "apps/support/device.h"
#include "apps/support/exit.h"

namespace weft::nersc {

int train(int argc, char** argv, bool several) {
  return support::guarded_main(several ? "train_multi_gpu" : "train_single_gpu", [&] {
    Options options;
    if (!parse_options(argc, argv, several, options)) return support::kExitOk;
    const Config config = read_config(options);
    // One GPU means alone, also in an allocation of several tasks.
    const support::Ranks ranks({.alone = !several, .backend = options.backend, .device = options.device});
    if (several)
      std::cout << str("running on rank ", ranks.rank(), " with world size ", ranks.size(), "\n") << std::flush;
    Trainer trainer(options, config, ranks);
    if (options.dry_run) {
      if (ranks.is_first())
        std::cout << trainer.describe() << "device  " << support::describe(ranks.device())
                  << "\ndry run: would train this; nothing is written\n";
    } else {
      trainer.run();
    }
    return support::kExitOk;
  });
}

}  // namespace weft::nersc
