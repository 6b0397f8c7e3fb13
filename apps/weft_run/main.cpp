// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this node, with torchrun's flags and variables; see docs/launching.md.
#include "apps/support/exit.h"
#include "apps/weft_run/launcher.h"

int main(int argc, char** argv) {
  return weft::support::guarded_main("weft-run", [&] {
    const auto options = weft::weft_run::parse_options({argv + 1, argv + argc});
    return options ? weft::weft_run::launch(*options) : weft::support::kExitOk;
  });
}
