// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::train_image {

/// Where a run stands between two steps, and the running sums of the epoch under way.
struct Position {
  int64_t epoch = 0, step_in_epoch = 0, step = 0;
  int64_t images = 0;
  double loss_sum = 0, correct = 0;
  double best_accuracy = -1;
  int64_t best_epoch = -1;
};

}  // namespace weft::train_image
