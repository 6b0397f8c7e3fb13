// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/jsc/run.h"
#include "data/image_loader.h"
#include "dist/group/world.h"

namespace weft::jsc {

/// The images of a run, and how they reach the model: 196x196 with antialiasing, ImageNet's normalisation; in
/// training mirrored half of the time.
class Images {
 public:
  static constexpr int64_t kSide = 196;

  /// Errors: those of the readers; a hint where nothing is at the usual place.
  Images(const Options& options, const dist::World& ranks);

  /// Shuffled, and the same number for each rank: some come twice where the set does not divide.
  std::unique_ptr<data::ImageLoader> training() const;
  /// In order, each image once on one of the ranks; null where this rank has none.
  std::unique_ptr<data::ImageLoader> validation() const { return in_order(val_); }
  std::unique_ptr<data::ImageLoader> test() const { return test_ ? in_order(test_) : nullptr; }
  bool has_test() const { return test_ != nullptr; }

  const std::vector<std::string>& classes() const { return train_->classes(); }
  int64_t steps_per_epoch() const;
  /// One line for each part.
  std::string describe() const;

 private:
  using Set = std::shared_ptr<const data::Dataset>;
  std::unique_ptr<data::ImageLoader> in_order(const Set& set) const;
  data::Sampler order(const Set& set, bool training) const;
  data::ImageLoaderOptions loading(int64_t images) const;

  const Options& options_;
  const dist::World& ranks_;
  Set train_, val_, test_;
};

}  // namespace weft::jsc
