// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include "core/tensor.h"
#include "data/field_series.h"
#include "data/sampler.h"

namespace weft::data {

struct FieldBatch {
  Tensor input;   ///< f32 [count, rows, columns, in_channels]
  Tensor target;  ///< f32 [count, rows, columns, out_channels]
};

struct FieldLoaderOptions {
  int64_t batch_size = 1;  ///< of this rank; what does not fill a batch is left out
  int workers = 0;         ///< threads; 0: next() reads the batch itself
  int prefetch = 2;        ///< batches read ahead
  Device device = {};      ///< where batches arrive
};

/// Batches of a FieldSeries in a sampler's order, read ahead by threads. What is in a batch depends on (epoch, step)
/// alone. An exception in a worker is thrown by the next() that would have returned the batch. Use it from one thread.
///   loader.start(epoch);                       // or start(epoch, step) to resume
///   while (auto batch = loader.next()) { … }
class FieldLoader {
 public:
  /// Errors: a batch size below 1 or above this rank's number of samples, workers below 0.
  FieldLoader(std::shared_ptr<const FieldSeries> series, Sampler sampler, FieldLoaderOptions options);
  ~FieldLoader();
  FieldLoader(const FieldLoader&) = delete;
  FieldLoader& operator=(const FieldLoader&) = delete;

  int64_t steps_per_epoch() const;
  void start(int64_t epoch, int64_t step = 0);
  /// None at the end of the epoch.
  std::optional<FieldBatch> next();

 private:
  class Readers;
  std::unique_ptr<Readers> readers_;
};

}  // namespace weft::data
