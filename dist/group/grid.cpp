// SPDX-License-Identifier: Apache-2.0
#include "dist/group/grid.h"

namespace weft::dist {

Grid::Grid(ProcessGroupPtr world, int model) : world_(std::move(world)) {
  WEFT_CHECK(world_, "grid: expected a group, got none");
  WEFT_CHECK(model > 0 && world_->size() % model == 0, "grid: ", model, " model ranks do not divide ", world_->size(),
             world_->size() == 1 ? " rank" : " ranks");
  const int rank = world_->rank();
  model_ = world_->split(rank / model, rank, "model");
  data_ = world_->split(rank % model, rank, "data");
}

}  // namespace weft::dist
