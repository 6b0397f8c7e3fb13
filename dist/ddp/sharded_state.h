// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "io/checkpoint_index.h"
#include "nn/module.h"

namespace weft::dist {

/// Consecutive elements of a named tensor, or of a part of this tensor: a rank's piece.
struct TensorPiece {
  std::string name;
  Shape sizes;                                ///< sizes of the whole tensor as stored (convolution weights OHWI)
  nn::Layout layout = nn::Layout::as_stored;  ///< its layout in full state dicts
  int64_t begin = 0;                          ///< the first element, in row-major order of `sizes` or of the part `of`
  Tensor values;                              ///< [count]; shares memory with its owner
  bool is_copy = false;                       ///< another rank holds the same and saves it
  int64_t* counter = nullptr;                 ///< a number on the host that `values` is a copy of
  StridedPart of = {};                        ///< the rows, columns or stretches of a model rank
};

/// One rank's pieces of a part of a checkpoint (a model, an optimizer). Saving reads the pieces, loading writes them in
/// place. Replicated tensors are whole on every rank. All ranks together hold every element.
struct ShardedState {
  std::vector<TensorPiece> pieces;
  std::vector<NamedScalar> scalars;  ///< equal on all ranks
  std::function<bool(const std::string& name)> is_elsewhere = {};  ///< other ranks hold all of it; null: of no tensor
};

}  // namespace weft::dist
