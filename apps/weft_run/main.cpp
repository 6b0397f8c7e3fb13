// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this node, with torchrun's flags and variables; see docs/launching.md.
#include "apps/weft_run/launcher.h"
#include "train/exit.h"

int main(int argc, char** argv) {
  return weft::train::guarded_main("weft-run", [&] {
    const auto options = weft::weft_run::parse_options({argv + 1, argv + argc});
    return options ? weft::weft_run::launch(*options) : weft::train::kExitOk;
  });
}
