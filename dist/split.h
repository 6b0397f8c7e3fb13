// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "dist/process_group.h"

namespace weft::dist {

/// The ranks of `group` that say the same color as this one, by key and then rank; none for a negative color.
/// Collective.
std::vector<int> members_of_split(ProcessGroup& group, int color, int key, const std::string& name);

}  // namespace weft::dist
