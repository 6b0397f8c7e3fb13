// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "dist/fsdp/flat_shard.h"

namespace weft::dist {

/// The gradients of a FlatShard during backward: collected in a flat buffer, weighted, then reduced to this rank's
/// part, which is added to the gradients of the shards. The buffer exists from the first use in backward to the end of
/// the reduction (longer while gradients are accumulated unsharded).
class ShardGradient {
 public:
  /// `replicas`: the ranks that hold the same part; their gradients are summed too. `reduce`: the dtype of the
  /// reduction.
  ShardGradient(FlatShard& shard, ProcessGroupPtr replicas, DType reduce);
  /// This rank's part of the flat gradient [shard_numel()].
  void set_target(const Tensor& target) { target_ = target.detach(); }

  const FlatShard& shard() const { return *shard_; }

  /// Sets the parameters' gradients to their slices of the buffer, so that backward writes there.
  void prepare();
  /// Parameter `i` has its gradient of one pass: adds it to the buffer, times `weight` [1] (undefined: 1).
  void take(size_t i, const Tensor& weight);
  /// Every parameter's gradient has been added since the last reduction, and no running pass will compute another.
  bool is_complete() const;
  /// There is something to reduce.
  bool has_any() const { return arrived_ > 0 || held_; }
  /// Withdraws the slices without a gradient, and releases an empty buffer.
  void withdraw();
  /// The pass ends without a reduction: its gradients stay for the next one.
  void hold();

  /// Enqueues the reduction.
  void start_reduce();
  /// Waits for it and adds the result to the gradients of the shards (or sets them if they count as zero).
  void finish_reduce();
  bool is_reducing() const { return static_cast<bool>(reducing_); }
  /// Discards everything after a failed backward.
  void drop();

 private:
  void make_buffer();
  Tensor place(size_t i) const;

  FlatShard* shard_;
  ProcessGroupPtr replicas_;
  DType reduce_;
  Tensor target_;
  Tensor buffer_;               // [numel] of the unit
  std::vector<bool> taken_;     // since the last reduction, per parameter
  std::vector<bool> prepared_;  // the parameter's grad() is its slice
  size_t arrived_ = 0;
  bool held_ = false;  // of earlier passes
  WorkPtr work_;
  Tensor reducing_, part_;
};

}  // namespace weft::dist
