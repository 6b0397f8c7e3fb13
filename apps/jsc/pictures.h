// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/jsc/options.h"
#include "apps/support/ranks.h"
#include "data/loader.h"

namespace weft::jsc {

/// The pictures of a run, and how they reach the model: 196x196 with antialiasing, ImageNet's normalisation; in
/// training mirrored half of the time.
class Pictures {
 public:
  static constexpr int64_t kSide = 196;

  /// Errors: those of the readers; a hint where nothing is at the usual place.
  Pictures(const Options& options, const support::Ranks& ranks);

  /// Shuffled, and the same number for each rank: some come twice where the set does not divide.
  std::unique_ptr<data::Loader> training() const;
  /// In order, each picture once on one of the ranks; null where this rank has none.
  std::unique_ptr<data::Loader> validation() const { return in_order(val_); }
  std::unique_ptr<data::Loader> test() const { return test_ ? in_order(test_) : nullptr; }
  bool has_test() const { return test_ != nullptr; }

  const std::vector<std::string>& classes() const { return train_->classes(); }
  int64_t steps_per_epoch() const;
  /// One line for each part.
  std::string describe() const;

 private:
  using Set = std::shared_ptr<const data::Dataset>;
  std::unique_ptr<data::Loader> in_order(const Set& set) const;
  data::Sampler order(const Set& set, bool training) const;
  data::LoaderOptions loading(int64_t pictures) const;

  const Options& options_;
  const support::Ranks& ranks_;
  Set train_, val_, test_;
};

}  // namespace weft::jsc
