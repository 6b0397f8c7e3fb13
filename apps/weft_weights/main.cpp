// SPDX-License-Identifier: Apache-2.0
// Shows, converts and compares files of weights; see docs/weights.md.
#include "train/exit.h"
#include "apps/weft_weights/options.h"

int main(int argc, char** argv) {
  using namespace weft::weft_weights;
  return weft::train::guarded_main("weft-weights", [&] {
    const auto options = parse_options({argv + 1, argv + argc});
    if (!options) return weft::train::kExitOk;
    return options->command == "show"      ? show(*options)
           : options->command == "convert" ? convert(*options)
                                           : diff(*options);
  });
}
