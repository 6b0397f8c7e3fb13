// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/options.h"
#include "core/ops/resize2d.h"
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

  int64_t classes() const { return static_cast<int64_t>(train_set_->classes().size()); }
  int64_t side() const { return side_; }
  Device device() const { return ranks_.device(); }  ///< where the backbone runs
  std::string describe() const;
  /// Which images they are, with checksums where they are in memory, else with the files' names, sizes and times.
  std::string identity() const;
  /// What is done to them.
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

  /// What a loader's images become on the way to the backbone: [N, side, side, 3].
  Tensor prepare(const Tensor& images) const;

 private:
  const std::shared_ptr<const data::Dataset>& set(data::Split split) const;
  std::unique_ptr<data::ImageLoader> loader(data::Split split, data::Sampler order) const;
  void resize_on_device();

  Options options_;
  const dist::World& ranks_;
  int64_t side_, edge_;  ///< of the input; of the shortest edge before the cut
  std::shared_ptr<const data::Dataset> train_set_, val_set_;
  std::string pipeline_;    ///< what the loader does
  Resize2dWeights resize_;  ///< undefined: the loader resizes
};

/// What one step eats: images for a backbone, or what a backbone said of them, for the classifier alone.
struct Examples {
  Tensor input, labels;
  int64_t count = 0, epoch = 0, step = 0;
};

/// Where the steps of a phase come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t examples() const = 0;  ///< of this rank in an epoch
  virtual int64_t batches() const = 0;
  virtual double mean_examples(int64_t batch) const = 0;  ///< of a batch, over the ranks
  /// next() brings batch `batch` of the epoch, and so on.
  virtual void start(int64_t epoch, int64_t batch = 0) = 0;
  virtual std::optional<Examples> next() = 0;
  /// An input that is none of the set's, for the steps of ranks that have none.
  virtual Tensor stand_in() const = 0;
};

/// Images from a loader (null: this rank has none).
class ImageSource final : public Source {
 public:
  /// `examples`: that the loader brings in an epoch.
  ImageSource(const Images& images, std::unique_ptr<data::ImageLoader> loader, int64_t examples)
      : images_(images), loader_(std::move(loader)), examples_(examples) {}
  int64_t examples() const override { return examples_; }
  int64_t batches() const override { return loader_ ? loader_->steps_per_epoch() : 0; }
  double mean_examples(int64_t batch) const override { return loader_ ? loader_->mean_count(batch) : 0; }
  void start(int64_t epoch, int64_t batch = 0) override {
    if (loader_) loader_->start(epoch, std::min(batch, loader_->steps_per_epoch()));
  }
  std::optional<Examples> next() override;
  Tensor stand_in() const override;

 private:
  const Images& images_;
  std::unique_ptr<data::ImageLoader> loader_;
  int64_t examples_;
};

/// Rows of a table of features, in the order and the batches in which ImageSource would bring the images.
class FeatureSource final : public Source {
 public:
  FeatureSource(const Features& features, const data::Sampler& order, int64_t batch_size);
  int64_t examples() const override { return loader_.samples_per_epoch(); }
  int64_t batches() const override { return loader_.steps_per_epoch(); }
  double mean_examples(int64_t batch) const override { return loader_.mean_count(batch); }
  void start(int64_t epoch, int64_t batch = 0) override {
    loader_.start(epoch, std::min(batch, loader_.steps_per_epoch()));
  }
  std::optional<Examples> next() override { return loader_.next(); }
  Tensor stand_in() const override;

 private:
  const Features& features_;
  data::BatchLoader<Examples> loader_;
};

}  // namespace weft::linear_probe
