// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::dist {

/// How a tensor is divided among the model ranks of a grid.
struct Partition {
  int dim = -1;           ///< the divided dimension; -1: every rank holds the whole tensor
  int64_t stretches = 1;  ///< equal stretches of the dimension, each of which is divided: 3 for q, k and v

  bool is_whole() const { return dim < 0; }
  /// Rank `rank`'s part, as a copy. Errors: the ranks do not divide the dimension.
  Tensor part(const Tensor& whole, int rank, int ranks) const;
  /// Joins all ranks' parts, in their order.
  Tensor whole(const std::vector<Tensor>& parts) const;
};

/// A module with own parameters that are parts of larger ones.
class PartitionedModule {
 public:
  virtual ~PartitionedModule() = default;
  /// The partition of the parameter with this name in fields().
  virtual Partition partition(const std::string& parameter) const = 0;
};

}  // namespace weft::dist
