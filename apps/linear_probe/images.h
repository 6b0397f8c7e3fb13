// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "apps/linear_probe/options.h"
#include "core/ops/layers/resize2d.h"
#include "data/image_loader.h"
#include "dist/group/world.h"

namespace weft::linear_probe {

/// The two parts of a set as the backbone sees them: shortest edge resized with antialiasing, centre cut out,
/// normalised with ImageNet's statistics; no augmentation. Small images in memory travel as they are and are resized
/// on the device; images from files are resized by the loader.
class Images {
 public:
  /// `side`: of the backbone's input. Errors: the set cannot be read; it has not 3 channels; --resize does not fit.
  Images(const Options& options, const dist::World& ranks, int64_t side);

  const std::vector<std::string>& classes() const { return train_set_->classes(); }
  int64_t side() const { return side_; }
  std::string describe() const;
  /// Which images they are, with checksums where they are in memory, else with the files' names, sizes and times.
  std::string identity() const;
  /// The preprocessing of the images.
  std::string preprocessing() const;

  /// This rank's loader over the training part, shuffled in every epoch; as many steps on all ranks.
  std::unique_ptr<data::ImageLoader> training() const;
  /// This rank's loader over a part in the order of the set, rank r taking r, r + ranks, …; with `repeat` the last ones
  /// begin again, so that all ranks have as many. None where this rank has no image.
  std::unique_ptr<data::ImageLoader> in_order(data::Split split, bool repeat) const;
  /// The order of training(): which image comes where.
  data::Sampler training_order() const;
  /// Images of the part on all ranks.
  int64_t size(data::Split split) const { return set(split)->size(); }

  /// A loader's images in the form for the backbone: [N, side, side, 3].
  Tensor prepare(const Tensor& images) const;

 private:
  const std::shared_ptr<const data::Dataset>& set(data::Split split) const;
  std::unique_ptr<data::ImageLoader> loader(data::Split split, data::Sampler order) const;
  void resize_on_device();

  Options options_;
  const dist::World& ranks_;
  int64_t side_, edge_;  ///< edge of the input; shortest edge before the cut
  std::shared_ptr<const data::Dataset> train_set_, val_set_;
  std::string pipeline_;    ///< the loader's preprocessing
  Resize2dWeights resize_;  ///< undefined: the loader resizes
};

}  // namespace weft::linear_probe
