// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "train/record/json_lines.h"

namespace weft::train {

/// `steps`: of some steps of training, within an epoch.
enum class Split { train, val, steps };

/// One line of metrics.jsonl. `time` is filled in when it is 0.
struct MetricRow {
  double time = 0;  ///< seconds since 1970
  int64_t epoch = 0;
  int64_t step = 0;
  Split split = Split::train;
  double loss = 0;
  double accuracy = 0;  ///< 0 … 1
  double lr = 0;
  double images_per_second = 0;
  double data_wait = 0;                           ///< share of the time spent waiting for data, 0 … 1
  std::optional<double> gradient_norm = {};       ///< norm in the last step, before clipping
  std::optional<int64_t> peak_tensor_bytes = {};  ///< the most that tensors of this rank's device took at once so far
};

/// The row as one JSON object without a newline; numbers that are not finite become null, absent ones are left out.
std::string to_json(const MetricRow& row);

/// Appends JSON objects to metrics.jsonl, each as a line in one write.
class Metrics {
 public:
  /// Opens for appending; a half-written last line goes, and so do lines of steps after `resumed_step` (-1: a new run):
  /// they will be written again.
  explicit Metrics(std::filesystem::path path, int64_t resumed_step = -1) : lines_(std::move(path), resumed_step) {}

  void append(MetricRow row);

 private:
  JsonLines lines_;
};

}  // namespace weft::train
