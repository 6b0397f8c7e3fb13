// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/field_series.h"
#include "data/loader.h"

namespace weft::data {

struct FieldBatch {
  Tensor input;   ///< f32 [count, rows, columns, in_channels]
  Tensor target;  ///< f32 [count, rows, columns, out_channels]
  int64_t count = 0, epoch = 0, step = 0;
};

/// Batches of a FieldSeries, read straight into their memory.
class FieldLoader : public BatchLoader<FieldBatch> {
 public:
  FieldLoader(const std::shared_ptr<const FieldSeries>& series, const Sampler& sampler, const LoaderOptions& options);
};

}  // namespace weft::data
