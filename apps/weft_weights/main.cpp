// SPDX-License-Identifier: Apache-2.0
// Looks into files of weights, converts and compares them; see docs/weights.md.
#include "apps/support/exit.h"
#include "apps/weft_weights/options.h"

int main(int argc, char** argv) {
  using namespace weft::weft_weights;
  return weft::support::guarded_main("weft-weights", [&] {
    const auto options = parse_options({argv + 1, argv + argc});
    if (!options) return weft::support::kExitOk;
    return options->command == "show"      ? show(*options)
           : options->command == "convert" ? convert(*options)
                                           : diff(*options);
  });
}
