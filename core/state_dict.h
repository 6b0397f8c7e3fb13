// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace weft {

/// A tensor and its path: `layer3.0.conv1.weight`.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A number and its path: `step`, `epoch`.
struct NamedScalar {
  std::string name;
  double value = 0;
};

/// The saved state of a model or an optimizer: tensors and numbers in a fixed order, each under a unique name. The
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

/// A convolution's weight lies [O, spatial …, C] in memory, and [O, C, spatial …] in files: the one as a view in the
/// order of the other.
Tensor to_file_order(const Tensor& weight);
Tensor from_file_order(const Tensor& weight);
Shape to_file_order(const Shape& sizes);
Shape from_file_order(const Shape& sizes);

/// The tensors of a dict by name. A `module.` before all names, as a wrapped PyTorch model writes them, is left out.
/// Errors: a name that occurs twice.
std::unordered_map<std::string, Tensor> tensors_by_name(const StateDict& dict);
/// As above, in the dict's order.
std::vector<std::string> names_of(const StateDict& dict);

/// The text after "the weights do not fit": five names of each list that is not empty. Empty where all are.
std::string mismatch_text(const std::vector<std::string>& misshapen, const std::vector<std::string>& missing,
                          const std::vector<std::string>& unexpected);

}  // namespace weft
