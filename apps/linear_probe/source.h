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
  virtual int64_t steps() const = 0;  ///< of this rank in an epoch
  virtual void start(int64_t epoch) = 0;
  virtual std::optional<Examples> next() = 0;
};

/// Pictures from a loader (null: this rank has none).
class PictureSource final : public Source {
 public:
  PictureSource(const Pictures& pictures, std::unique_ptr<data::Loader> loader)
      : pictures_(pictures), loader_(std::move(loader)) {}
  int64_t steps() const override { return loader_ ? loader_->steps_per_epoch() : 0; }
  void start(int64_t epoch) override {
    if (loader_) loader_->start(epoch);
  }
  std::optional<Examples> next() override;

 private:
  const Pictures& pictures_;
  std::unique_ptr<data::Loader> loader_;
};

/// Rows of a table of features, in the order and the batches in which PictureSource would bring the pictures.
class FeatureSource final : public Source {
 public:
  FeatureSource(const Features& features, data::Sampler order, int64_t batch_size)
      : features_(features), order_(order), batch_(batch_size) {}
  int64_t steps() const override { return (order_.size() + batch_ - 1) / batch_; }
  void start(int64_t epoch) override { epoch_ = epoch, position_ = 0; }
  std::optional<Examples> next() override;

 private:
  const Features& features_;
  data::Sampler order_;
  int64_t batch_, epoch_ = 0, position_ = 0;
};

}  // namespace weft::linear_probe
