// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::tests {

/// Notes what the running test looks at: cells of one row of the tables in docs/ops.md (tools/op_table). The row counts
/// only if the test passes. Each test has a file of its own in the folder WEFT_TEST_ROWS; without it nothing is kept.
void add_row(std::vector<std::string> cells);

}  // namespace weft::tests
