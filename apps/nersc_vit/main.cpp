// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "apps/nersc_vit/trainer.h"
#include "apps/support/device.h"
#include "apps/support/exit.h"

namespace weft::nersc_vit {
namespace {

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return support::kExitOk;
  const support::Ranks ranks({.backend = options.backend, .device = options.device});
  if (ranks.size() % options.row_parallel_size != 0)
    throw support::UsageError(str("--row_parallel_size: ", options.row_parallel_size, " does not divide ", ranks.size(),
                                  ranks.size() == 1 ? " rank" : " ranks"));
  OutLog log;
  Trainer trainer(options, ranks, dist::Grid(ranks.group(), static_cast<int>(options.row_parallel_size)), log);
  if (options.dry_run) {
    if (ranks.is_first())
      std::cout << "device  " << support::describe(ranks.device()) << '\n'
                << trainer.describe() << "\ndry run: would train this; nothing is written" << std::endl;
    return support::kExitOk;
  }
  return support::exit_code(trainer.run());
}

}  // namespace
}  // namespace weft::nersc_vit

int main(int argc, char** argv) {
  return weft::support::guarded_main("train_vit", [&] { return weft::nersc_vit::run(argc, argv); });
}
