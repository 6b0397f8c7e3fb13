// SPDX-License-Identifier: Apache-2.0
#include "train/record/metrics.h"

#include <nlohmann/json.hpp>

namespace weft::train {

std::string to_json(const MetricRow& row) {
  nlohmann::ordered_json line{
      {"time", row.time},
      {"epoch", row.epoch},
      {"step", row.step},
      {"split", row.split == Split::train ? "train"
                : row.split == Split::val ? "val"
                                          : "steps"},
      {"loss", row.loss},
      {"accuracy", row.accuracy},
      {"lr", row.lr},
      {"images_per_second", row.images_per_second},
      {"data_wait", row.data_wait},
  };
  if (row.gradient_norm) line["gradient_norm"] = *row.gradient_norm;
  if (row.peak_tensor_bytes) line["peak_tensor_bytes"] = *row.peak_tensor_bytes;
  return line.dump();
}

void Metrics::append(MetricRow row) {
  if (row.time == 0) row.time = wall_time();
  lines_.append(to_json(row));
}

}  // namespace weft::train
