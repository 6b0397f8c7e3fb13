// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "tests/train_image/program.h"

namespace weft::tests {

/// Runs train_image on several ranks of this machine, started by hand with torchrun's variables; one Outcome per rank.
/// Ranks that are not done after `seconds` are killed (exit code 137).
std::vector<Outcome> train_image_on_ranks(int ranks, const std::string& arguments, const TemporaryFolder& folder,
                                          int seconds = 200);

}  // namespace weft::tests
