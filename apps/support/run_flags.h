// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/support/flags.h"
#include "train/run_options.h"

namespace weft::support {

/// Registers the shared flags that `names` lists, in groups: `epochs batch-size precision parallel backend seed out`.
/// Errors: a name that is none of them.
void add_run_flags(Flags& flags, train::RunOptions& options, const std::string& names);

}  // namespace weft::support
