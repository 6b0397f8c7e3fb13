// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace weft {

/// A tensor and its path: `layer3.0.conv1.weight`.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct NamedScalar {
  std::string name;
  double value = 0;
};

/// What is saved of a model or an optimizer: tensors and numbers in a fixed order, each under a unique name. The
/// tensors share memory with their owner; writers copy them.
struct StateDict {
  std::vector<NamedTensor> tensors;
  std::vector<NamedScalar> scalars;

  /// The tensor of this name; undefined when there is none.
  Tensor tensor(std::string_view name) const {
    for (const NamedTensor& entry : tensors)
      if (entry.name == name) return entry.tensor;
    return {};
  }
  /// The number of this name. Errors: none of this name.
  double scalar(std::string_view name) const {
    for (const NamedScalar& entry : scalars)
      if (entry.name == name) return entry.value;
    fail("state dict: no number named '", name, "'");
  }
};

}  // namespace weft
