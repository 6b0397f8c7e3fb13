// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/finetune/configuration.h"
#include "data/text/text_table.h"

namespace weft::finetune {

/// A model's view of a table's labels.
struct Labels {
  bool regression = false;
  std::vector<std::string> names;  ///< names of the model's classes; none for a regression
  std::vector<std::string> keys;   ///< how the texts write them
  bool fits_weights = true;        ///< else the weights' classifier is one of other classes
  std::string note;                ///< for a warning; "": nothing

  int64_t outputs() const { return regression ? 1 : static_cast<int64_t>(names.size()); }
  /// The table's labels as the model's classes, or as scores. Errors: a label that is none of them.
  std::vector<double> of(const data::TextTable& table) const;
};

/// `problem`: `auto`, `regression` or `single_label_classification`. Labels are matched by the names of the weights'
/// classes, capitals or not; whole numbers below their count are their ids; other labels make a new classifier, which
/// `note` says. Errors: no labels or one alone, a regression of labels that are no numbers, a contradiction.
Labels choose_labels(const data::TextTable& train, const Configuration& weights, const std::string& problem);

}  // namespace weft::finetune
