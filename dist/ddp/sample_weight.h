// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"

namespace weft::dist {

/// The weight of a rank's gradients: n_r / N for n_r samples on this rank and N on all. A loss that is the mean over
/// the rank's samples then becomes the mean over all samples, also for uneven batches. The ranks sum their counts while
/// the forward runs. Each forward has a weight of its own, which its backward uses, whatever forward ran in between.
class SampleWeight {
 public:
  explicit SampleWeight(ProcessGroupPtr group) : group_(std::move(group)) {}

  /// Sets the number of samples of this rank's forward, 0 for a dummy batch; collective.
  void begin(int64_t samples, Device device);
  int64_t samples() const { return samples_; }
  /// Waits for the sum of the counts, if nobody has yet.
  void wait();
  /// The weight of an earlier forward, after begin() of a dummy batch: its gradients are 0.
  void keep(const Tensor& weight);
  /// n_r / N, [1] on the device, after begin(); undefined where the rank is alone. Waits for ranks that have not begun
  /// their forward; nobody is delayed by that, for they have farther to go than this rank.
  Tensor get(DType dtype);

 private:
  ProcessGroupPtr group_;
  int64_t samples_ = -1;
  Tensor total_, weight_;
  WorkPtr work_;
};

}  // namespace weft::dist
