// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <future>
#include <optional>

#include "core/tensor.h"
#include "data/sampler.h"

namespace weft::nersc {

struct RandomFieldsOptions {
  int64_t samples = 128;
  int64_t size = 128;  ///< height and width
  int64_t in = 1, out = 1;
  int64_t batch_size = 32;  ///< of this rank
  int workers = 1;          ///< batches made ahead, a thread each; 0: made when asked for
  uint64_t seed = 0;
  Device device = {};
};

struct FieldBatch {
  Tensor x;  ///< [B, H, W, in]
  Tensor y;  ///< [B, H, W, out]
};

/// A set of pairs of fields that are uniform in [0, 1) and new in every epoch: a sample is a function of (seed, epoch,
/// number) alone, so that all numbers of ranks and workers see the same. Of targets that nothing foretells, the best
/// guess is 1/2, and the least mean squared error 1/12. The last, smaller batch is left out.
class RandomFields {
 public:
  /// Errors: a batch that is larger than the samples of this rank.
  RandomFields(const RandomFieldsOptions& options, const data::Sampler& sampler);
  RandomFields(const RandomFields&) = delete;
  RandomFields& operator=(const RandomFields&) = delete;

  int64_t steps_per_epoch() const { return sampler_.size() / options_.batch_size; }
  void start(int64_t epoch);
  /// The next batch; none at the end of the epoch.
  std::optional<FieldBatch> next();

 private:
  FieldBatch make(int64_t epoch, int64_t step) const;
  void make_ahead();

  RandomFieldsOptions options_;
  data::Sampler sampler_;
  int64_t epoch_ = 0, asked_ = 0;  // steps of this epoch that are made, or under way
  std::deque<std::future<FieldBatch>> ahead_;
};

}  // namespace weft::nersc
