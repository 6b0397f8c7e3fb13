// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dist/group/divided_module.h"
#include "io/checkpoint_index.h"

namespace weft::dist {

/// How a tensor is divided among the model ranks of a grid.
struct Partition {
  int dim = -1;           ///< the divided dimension; -1: every rank holds the whole tensor
  int64_t stretches = 1;  ///< equal stretches of the dimension, each of which is divided: 3 for q, k and v
  /// Elements of the whole dimension, where parts are the ranks' shares, padded with 0 to the largest; 0: the ranks
  /// divide the dimension.
  int64_t size = 0;

  /// Elements first … first + count - 1 belong to a rank; counts differ by at most one.
  struct Share {
    int64_t first, count;
  };
  /// Errors: more ranks than elements.
  static Share share(int64_t size, int rank, int ranks);

  bool is_whole() const { return dim < 0; }
  /// Rank `rank`'s part, as a copy. Errors: the ranks do not divide the dimension.
  Tensor part(const Tensor& whole, int rank, int ranks) const;
  Shape part_sizes(const Shape& whole, int ranks) const;
  Shape whole_sizes(const Shape& part, int ranks) const;
  /// Where the elements of rank `rank`'s part, without its padding, lie in the whole tensor.
  StridedPart strided(const Shape& part, int rank, int ranks) const;
  /// Joins all ranks' parts, in their order.
  Tensor whole(const std::vector<Tensor>& parts) const;
};

/// This rank's part as a parameter; undefined where `whole` is. A deferred tensor (nn::DeferredInit) has a deferred
/// part, whose writing writes the whole tensor on the host for a moment.
Tensor parameter_part(const Tensor& whole, const Partition& partition, const ProcessGroup& group);

/// A module that the model ranks of a grid divide.
class PartitionedModule : public DividedModule {
 public:
  /// The partition of the parameter with this name in fields().
  virtual Partition partition(const std::string& parameter) const = 0;
};

}  // namespace weft::dist
