// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/process_group.h"

namespace weft::dist {

/// How much a rank's gradients count: n_r / N for n_r samples on this rank and N on all. A loss that is the mean over
/// the rank's samples then becomes the mean over all of them, uneven batches included. The ranks add their counts up
/// while the forward runs.
class SampleWeight {
 public:
  explicit SampleWeight(ProcessGroupPtr group) : group_(std::move(group)) {}

  /// This rank's next forward has so many samples; collective. Errors: below 1.
  void begin(int64_t samples, Device device);
  /// n_r / N, [1] on the device; undefined where the rank is alone. Errors: begin() was not called.
  Tensor get(DType dtype);

 private:
  ProcessGroupPtr group_;
  int64_t samples_ = 0;
  Tensor total_, weight_;
  WorkPtr work_;
};

}  // namespace weft::dist
