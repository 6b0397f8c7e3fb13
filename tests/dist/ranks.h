// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "dist/process_group.h"

namespace weft::dist::testing {

/// What the tests of collectives run on. `gloo` ranks are threads with a connection each.
std::vector<std::string> backends();

/// Runs the function as the ranks of one group, as run_ranks() does.
void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options = {});

}  // namespace weft::dist::testing
