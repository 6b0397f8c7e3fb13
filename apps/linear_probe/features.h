// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/linear_probe/images.h"
#include "dist/group/world.h"
#include "nn/module.h"

namespace weft::linear_probe {

/// What a frozen backbone says of each image of a part, in the order of the set. Every rank has all of it.
struct Features {
  Tensor values;  ///< [images, width], f32, on the device
  Tensor labels;  ///< i64 [images], on the device
};

/// Runs `backbone` (images [N, side, side, 3] to [N, width]) once over the part, each rank over its share, and brings
/// the shares together. All ranks call it.
Features compute_features(const Images& images, data::Split split, const dist::World& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone);

/// Both parts of a set as a frozen backbone sees them.
struct FeatureSets {
  Features training, validation;
};

/// What features depend on, one line each: the backbone's weights (names, shapes, checksums), both parts of the set
/// (images and labels), what happens to images on the way, the precision. Equal texts mean equal features, up to
/// the order of sums on another device or for another batch size.
std::string features_fingerprint(nn::Module& backbone, const Images& images, const std::string& model,
                                 const std::string& precision);

/// Features in a file (io/checkpoint.h), so that the next run needs no backbone: read when the file was made from the
/// same fingerprint, else computed by `compute` and written, whole or not at all. Rank 0 reads and writes for all
/// ranks, at any number of them. Says on stdout what it did. All ranks call it. Errors: the file is no file of features
/// (it is left alone), it is damaged, its folder cannot be written.
FeatureSets features_of_file(const std::filesystem::path& path, const std::string& fingerprint,
                             const dist::World& ranks, const std::function<FeatureSets()>& compute);

/// What one step eats: images for a backbone, or what a backbone said of them, for the classifier alone.
struct Examples {
  Tensor input, labels;
  int64_t count = 0, epoch = 0, step = 0;
  void fields(auto& v) { v("input", input), v("labels", labels); }
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
