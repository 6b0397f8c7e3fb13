// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "apps/train_image/experiment.h"
#include "apps/train_image/position.h"
#include "optim/ema.h"

namespace weft::train_image {

/// All that a run is made of between two steps, as it goes into a checkpoint and comes out of it.
struct RunState {
  Experiment& experiment;
  optim::Optimizer& optimizer;
  optim::Ema* averages;  ///< may be null
  Position& position;

  /// Rank 0 writes; all ranks call it. Nothing is written by a build without HDF5.
  void save(const std::filesystem::path& path) const;
  /// Goes on from the checkpoint of --resume and returns its path; "": there is none. Errors: the checkpoint's; it is
  /// of another model or of another global batch.
  std::string resume() const;
};

}  // namespace weft::train_image
