// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"

namespace weft::dist {

/// Ranks in a grid of data x model ranks. The `model` ranks of a row hold one copy of the model together (tensor
/// parallelism) and see the same samples; they are neighbours, so that they share a host, as their traffic is the
/// larger. The ranks of a column hold the same part of it and see different samples:
///   8 ranks, model 4:  data rank 0 = { 0 1 2 3 }, data rank 1 = { 4 5 6 7 };  model rank 1 = { 1 5 }
class Grid {
 public:
  /// Collective. Errors: `model` is not positive or does not divide the ranks.
  Grid(ProcessGroupPtr world, int model);
  /// Of groups that are there already: a `data` of one rank leaves each row to itself.
  Grid(ProcessGroupPtr world, ProcessGroupPtr model, ProcessGroupPtr data)
      : world_(std::move(world)), model_(std::move(model)), data_(std::move(data)) {}

  const ProcessGroupPtr& world() const { return world_; }
  const ProcessGroupPtr& model() const { return model_; }  ///< who shares this rank's samples
  const ProcessGroupPtr& data() const { return data_; }    ///< who shares this rank's part of the model
  int model_rank() const { return model_->rank(); }
  int data_rank() const { return data_->rank(); }

 private:
  ProcessGroupPtr world_, model_, data_;
};

}  // namespace weft::dist
