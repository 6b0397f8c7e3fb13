// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/loader.h"

namespace weft::nersc {

struct RandomFieldsOptions {
  int64_t samples = 128;
  int64_t size = 128;  ///< height and width
  int64_t in = 1, out = 1;
  int workers = 1;  ///< threads; 0: batches are made when asked for
  uint64_t seed = 0;
  Device device = {};
};

struct FieldBatch {
  Tensor x;  ///< [B, H, W, in]
  Tensor y;  ///< [B, H, W, out]
  int64_t count = 0, epoch = 0, step = 0;
  void fields(auto& v) { v("x", x), v("y", y); }
};

/// A set of pairs of fields that are uniform in [0, 1) and new in every epoch: a sample is a function of (seed, epoch,
/// number) alone, so that all numbers of ranks and workers see the same. Nothing predicts the targets, so the best
/// guess is 1/2, and the least mean squared error 1/12. An incomplete last batch of all ranks is left out, as in the
/// original.
class RandomFields : public data::Loader<FieldBatch> {
 public:
  /// `sampler` says what a batch is.
  RandomFields(const RandomFieldsOptions& options, const data::Sampler& sampler);
};

}  // namespace weft::nersc
