// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace weft::dist {

/// Which modules of a model become units: the parameters of a unit are sharded, gathered and released together. The
/// remaining parameters belong to the root unit, the model itself. Both rules may be given.
struct WrapPolicy {
  /// A module is a unit if at least this number of its parameters belong to no inner unit; 0: no rule by size. Deepest
  /// modules come first (PyTorch's size_based_auto_wrap_policy).
  int64_t min_num_params = 0;
  /// Modules of these kinds (Module::kind()) are units: `BasicBlock`, `Linear`.
  std::vector<std::string> kinds = {};
};

/// Modules of at least `min_num_params` are units; at 0 each transformer block of nn and dist is one, and modules of a
/// million parameters in a model without such blocks. Errors: a negative size.
WrapPolicy wrap_policy(nn::Module& model, int64_t min_num_params);

/// The units below `model` by their paths, parents before children. Errors: a kind that the model does not have (with
/// the nearest one), a negative size.
std::vector<std::pair<std::string, nn::Module*>> choose_units(nn::Module& model, const WrapPolicy& policy);

}  // namespace weft::dist
