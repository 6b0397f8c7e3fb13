// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace weft::dist {

/// The order in which a round (a forward and its backward) needs units, recorded in one round and used in the next one
/// to prefetch. If a round deviates from the last one, it prefetches nothing from there on.
class GatherPlan {
 public:
  /// A new round begins.
  void begin() {
    if (!seen_.empty()) known_ = std::move(seen_);
    seen_.clear();
    follows_ = true;
  }
  /// The step needs this unit now, for a new use.
  void needed(size_t unit) {
    follows_ = follows_ && seen_.size() < known_.size() && known_[seen_.size()] == unit;
    seen_.push_back(unit);
  }
  /// The unit that is needed next, or `ahead` uses later.
  std::optional<size_t> next(size_t others = 0) const {
    if (!follows_ || seen_.size() + others >= known_.size()) return {};
    return known_[seen_.size() + others];
  }

 private:
  std::vector<size_t> known_, seen_;
  bool follows_ = true;
};

}  // namespace weft::dist
