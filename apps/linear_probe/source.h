// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include "apps/linear_probe/features.h"
#include "apps/linear_probe/pictures.h"

namespace weft::linear_probe {

/// What one step eats: pictures for a backbone, or what a backbone said of them, for the classifier alone.
struct Examples {
  Tensor input, labels;
  int64_t count = 0;
};

/// Where the steps of a phase come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t examples() const = 0;  ///< of this rank in an epoch
  /// next() brings batch `batch` of the epoch, and so on.
  virtual void start(int64_t epoch, int64_t batch = 0) = 0;
  virtual std::optional<Examples> next() = 0;
  /// An input that is none of the set's, for the steps of ranks that have none.
  virtual Tensor stand_in() const = 0;
};

/// Pictures from a loader (null: this rank has none).
class PictureSource final : public Source {
 public:
  /// `examples`: that the loader brings in an epoch.
  PictureSource(const Pictures& pictures, std::unique_ptr<data::Loader> loader, int64_t examples)
      : pictures_(pictures), loader_(std::move(loader)), examples_(examples) {}
  int64_t examples() const override { return examples_; }
  void start(int64_t epoch, int64_t batch = 0) override {
    if (loader_) loader_->start(epoch, batch);
  }
  std::optional<Examples> next() override;
  Tensor stand_in() const override;

 private:
  const Pictures& pictures_;
  std::unique_ptr<data::Loader> loader_;
  int64_t examples_;
};

/// Rows of a table of features, in the order and the batches in which PictureSource would bring the pictures.
class FeatureSource final : public Source {
 public:
  FeatureSource(const Features& features, data::Sampler order, int64_t batch_size)
      : features_(features), order_(order), batch_(batch_size) {}
  int64_t examples() const override { return order_.size(); }
  void start(int64_t epoch, int64_t batch = 0) override { epoch_ = epoch, position_ = batch * batch_; }
  std::optional<Examples> next() override;
  Tensor stand_in() const override;

 private:
  const Features& features_;
  data::Sampler order_;
  int64_t batch_, epoch_ = 0, position_ = 0;
};

}  // namespace weft::linear_probe
