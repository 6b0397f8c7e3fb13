// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/dataset.h"

namespace weft::data {

/// Mean and standard deviation of each channel over the set, every image with the same weight; the default
/// normalisation of a set. One pass by several threads (0: one per core); at most kStatisticsImages images, evenly
/// spaced, where the set is not in memory. Computed once per set and kept with it. A channel without any variation gets
/// std 1. Errors: those of Dataset::get.
inline constexpr int64_t kStatisticsImages = 4096;
const ChannelStatistics& channel_statistics(const Dataset& set, int threads = 0);

}  // namespace weft::data
