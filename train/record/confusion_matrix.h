// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/record/canvas.h"

namespace weft::train {

/// Counts how often class `truth` was taken for class `guess`.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int classes);

  /// Errors: a class outside [0, classes).
  void add(int64_t truth, int64_t guess);
  void clear();
  /// The counts row by row: what ranks add up.
  const std::vector<int64_t>& counts() const { return counts_; }
  /// Errors: not classes() * classes() of them.
  void set_counts(std::vector<int64_t> counts);

  int classes() const { return classes_; }
  /// Samples of class `truth` that were taken for `guess`.
  int64_t count(int truth, int guess) const;
  int64_t total() const;
  /// The share on the diagonal; 0 when nothing was counted.
  double accuracy() const;

  /// A row per true class, a column per guess; the darker, the larger the share of the row; the diagonal is blue,
  /// errors are red. Up to 20 classes the percentages stand in the cells and the names (shortened) beside the rows;
  /// above, the cells shrink so that the image stays below about 1000 pixels.
  Canvas draw(const std::vector<std::string>& names = {}) const;

 private:
  int classes_;
  std::vector<int64_t> counts_;  // row by row
};

}  // namespace weft::train
