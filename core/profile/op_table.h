// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/profile/recording.h"

namespace weft::profile {

/// All calls of a kernel by an op.
struct OpRow {
  std::string op;      ///< `conv2d`, `conv2d backward`
  std::string kernel;  ///< `conv2d_backward_weight`
  int64_t calls = 0;
  int64_t time = 0;  ///< nanoseconds
  int64_t bytes = 0;
  double flop = 0;
};

/// The kernels of a recording by op, the longest first.
std::vector<OpRow> op_rows(const Recording& recording);

/// The rows as a text table with rates (GB/s, and GFLOP/s of products), and the parts of the program. Shares are of the
/// recording's wall-clock time.
std::string op_table(const Recording& recording);

}  // namespace weft::profile
