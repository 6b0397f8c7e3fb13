// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/train_image/options.h"
#include "data/dataset.h"

namespace weft::train_image {

/// What pixels are normalised by, per channel; white is 1.
struct PixelStatistics {
  std::vector<float> mean, std;
  std::string origin;  ///< `the training part`, …

  /// As texts of a checkpoint and metadata of what --export writes: `pixel_mean`, `pixel_std`.
  std::map<std::string, std::string> texts() const;
};

/// --mean and --std where they are given. Else of the training part; with --eval-only first what the file of --weights
/// says (texts()), and where there is neither, of the validation part. `train` may be null, `val` not. Errors:
/// UsageError for another count of channels or a deviation that is not positive.
PixelStatistics pixel_statistics(const Options& options, const data::Dataset* train, const data::Dataset& val);

}  // namespace weft::train_image
