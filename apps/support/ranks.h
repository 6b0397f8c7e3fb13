// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/world.h"

namespace weft::support {

struct RanksOptions {
  bool alone = false;            ///< do not look for other ranks
  std::string backend = "auto";  ///< see dist::InitOptions
  std::string device = "auto";   ///< see choose_device()
};

/// This process among those that train together; alone where nobody launched several.
class Ranks {
 public:
  /// Finds the other ranks (dist::init) and waits until all are there. Errors: those of dist::init and choose_device.
  explicit Ranks(const RanksOptions& options);
  /// As a rank of a group that is there already.
  Ranks(dist::ProcessGroupPtr group, Device device);

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  /// The rank that prints and writes files.
  bool is_first() const { return rank() == 0; }
  Device device() const { return device_; }
  const dist::ProcessGroupPtr& group() const { return group_; }

  /// `4 over gloo (RANK and WORLD_SIZE)`.
  std::string describe() const;

  /// The sums over all ranks; in the order of the ranks, so the same everywhere. Waits for all of them.
  std::vector<double> sum(const std::vector<double>& values, const std::string& what) const;
  int64_t max(int64_t value, const std::string& what) const;
  /// What GraphedFunctionOptions wants of several ranks; empty where this one is alone.
  std::function<bool(bool)> all_agree() const;
  /// All ranks' texts.
  std::vector<std::string> texts(const std::string& own, const std::string& what) const;
  /// Returns when all ranks have come here.
  void wait_for_all(const std::string& what) const;
  /// What rank 0 says.
  std::string first_says(const std::string& own, const std::string& what) const { return texts(own, what).front(); }

 private:
  Device where() const;  // of small tensors

  std::unique_ptr<dist::World> world_;
  dist::ProcessGroupPtr group_;
  Device device_;
};

}  // namespace weft::support
