// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::dist {

/// How a tensor is divided among the model ranks of a grid.
struct Partition {
  int dim = -1;           ///< the dimension that is cut; -1: every rank holds the whole tensor
  int64_t stretches = 1;  ///< the dimension is so many equal stretches, each of which is cut: 3 for q, k and v

  bool is_whole() const { return dim < 0; }
  /// Rank `rank`'s part, a tensor of its own. Errors: the dimension does not divide.
  Tensor part(const Tensor& whole, int rank, int ranks) const;
  /// The tensor of which all ranks' parts are given, in their order.
  Tensor whole(const std::vector<Tensor>& parts) const;
};

/// A module some of whose own parameters are parts of larger ones.
class PartitionedModule {
 public:
  virtual ~PartitionedModule() = default;
  /// Of the parameter that fields() names so.
  virtual Partition partition(const std::string& parameter) const = 0;
};

}  // namespace weft::dist
