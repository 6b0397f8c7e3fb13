// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "dist/group/process_group.h"

namespace weft::dist {

/// Makes sure that all ranks have the same lines, such as `lr = 0.1`. All ranks call it. Errors (on every rank): `what`
/// (`ddp: the model is`), the first line that differs, on which ranks, and `hint`.
void check_same_lines(ProcessGroup& group, const std::string& lines, const std::string& what, const std::string& hint);

}  // namespace weft::dist
