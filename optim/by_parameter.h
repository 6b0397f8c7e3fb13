// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

/// The base of optimizers that move each parameter by its own norms: LARS and LAMB. The norms are those of the whole
/// parameter, also where ranks hold parts of it (one gather per step then). Groups without weight decay (biases, norms)
/// move as they would without norms, as is usual, unless `always_adapt` is set.
class ByParameter : public Optimizer {
 protected:
  ByParameter(const char* name, const std::vector<ParameterGroup>& groups, double lr, double weight_decay,
              std::vector<std::string> states, bool always_adapt);

  bool adapts(int group) const { return always_adapt_ || weight_decay(group) != 0; }
  /// Of each parameter in each of these flat buffers: [buffers, parameters]; undefined where no group needs it.
  Tensor squares(const std::vector<Tensor>& buffers) const;
  /// Which elements belong to which parameter of a group (kernels/optimizer.h).
  const Tensor& chunks(int group) const { return chunks_.at(static_cast<size_t>(group)); }

 private:
  bool always_adapt_;
  Tensor all_chunks_, firsts_;  // of the slices in their order
  std::vector<Tensor> chunks_;  // by group
};

}  // namespace weft::optim
