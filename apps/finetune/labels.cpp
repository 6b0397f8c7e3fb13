// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/labels.h"

#include <algorithm>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::finetune {
namespace {

using Names = std::vector<std::string>;

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// -1: it is none of them. A name as it is written wins.
int64_t place_of(const Names& names, const std::string& name) {
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    found = std::find_if(names.begin(), names.end(), [&](const std::string& one) { return small(one) == small(name); });
  return found == names.end() ? -1 : found - names.begin();
}

bool all_in(const Names& labels, const Names& names) {
  return std::all_of(labels.begin(), labels.end(),
                     [&](const std::string& label) { return place_of(names, label) >= 0; });
}

/// Names of classes that a file only counts.
Names numbers_below(int64_t count) {
  Names names;
  for (int64_t id = 0; id < count; ++id) names.push_back(std::to_string(id));
  return names;
}

}  // namespace

Labels choose_labels(const data::TextTable& train, const Configuration& weights, const std::string& problem) {
  Labels result;
  double score = 0;
  const auto is_number = [&](const std::string& label) { return data::parse_score(label, score); };
  const auto other = std::find_if_not(train.classes.begin(), train.classes.end(), is_number);
  const bool numbers = other == train.classes.end();
  WEFT_CHECK(!train.classes.empty(), "expected labels in ", train.description,
             ", got none, or -1 alone as in GLUE's test parts. Columns: ", printable(joined(train.columns, 20)),
             ". --label-column-name names the labels");
  const auto with_point = std::find_if(train.classes.begin(), train.classes.end(), [&](const std::string& label) {
    return label.find('.') != std::string::npos && is_number(label);
  });
  WEFT_CHECK(problem != "auto" || numbers || with_point == train.classes.end(), "expected numbers as all labels, as '",
             printable(*with_point), "' is one, got '", printable(*other),
             "'. --problem-type single_label_classification makes each a class");
  const bool was_regression = weights.problem == "regression" || (weights.problem.empty() && weights.classes == 1);
  result.regression = problem == "regression" || (problem == "auto" && (train.scores || (was_regression && numbers)));
  if (result.regression) {
    WEFT_CHECK(numbers, "expected numbers as labels of a regression, got '", printable(*other), "'");
    WEFT_CHECK(problem != "auto" || weights.problem != "single_label_classification",
               "the labels are scores, but config.json says problem_type single_label_classification. --problem-type "
               "says which it is");
    result.fits_weights = was_regression || weights.classes == 0;
    if (!result.fits_weights)
      result.note = str("the weights tell ", weights.classes, " classes, the labels are scores: a new head");
    return result;
  }
  WEFT_CHECK(train.classes.size() >= 2, "expected at least two classes, got ", train.classes.size());
  const auto classes = static_cast<int64_t>(train.classes.size());
  if (!weights.labels.empty() && all_in(train.classes, weights.labels)) {
    result.names = weights.labels;
  } else if (weights.classes >= 2 && all_in(train.classes, numbers_below(weights.classes))) {
    result.keys = numbers_below(weights.classes);
    result.names = weights.labels.empty() ? result.keys : weights.labels;
    if (!weights.labels.empty())
      result.note = str("the labels ", joined(train.classes, 5), " are taken as the numbers of config.json's ",
                        printable(joined(weights.labels, 5)));
  } else {
    result.names = train.classes;
    result.fits_weights = weights.classes == 0 || (weights.labels.empty() && weights.classes == classes);
    if (!result.fits_weights)
      result.note =
          str("the weights tell ",
              weights.labels.empty() ? str(weights.classes, " classes") : printable(joined(weights.labels, 5)),
              ", the labels are ", printable(joined(train.classes, 5)), ": a new head");
  }
  if (result.keys.empty()) result.keys = result.names;
  return result;
}

std::vector<double> Labels::of(const data::TextTable& table) const {
  std::vector<double> values;
  for (const std::string& label : table.classes) {
    double value = 0;
    if (regression) {
      WEFT_CHECK(data::parse_score(label, value), "data: ", table.description, ": expected a number as label, got '",
                 printable(label), "'");
    } else {
      const int64_t place = place_of(keys, label);
      WEFT_CHECK(place >= 0, "data: ", table.description, ": the label '", printable(label),
                 "' is none of the model's: ", printable(joined(keys, 20)));
      value = static_cast<double>(place);
    }
    values.push_back(value);
  }
  std::vector<double> result;
  for (const data::LabelledText& row : table.rows) {
    WEFT_CHECK(row.label >= 0, "data: ", table.description, ": the texts have no labels");
    result.push_back(values[static_cast<size_t>(row.label)]);
  }
  return result;
}

}  // namespace weft::finetune
