// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "dist/fsdp/fsdp_options.h"

namespace weft::dist {

/// The parameters of each unit, and the buffers that gather them.
struct UnitLayout {
  struct Buffer {
    bool low = false, trained = false;
    std::vector<NamedTensor> parameters;  ///< matrices first, then vectors, so that a rule by rank needs two ranges
    /// Suffix that distinguishes a unit's buffers: empty for trained f32, ` (low, frozen)`.
    std::string suffix() const;
  };
  struct Unit {
    std::string name;  ///< path of the module; `root`
    nn::Module* module = nullptr;
    std::vector<Buffer> buffers;
  };
  std::vector<Unit> units;                             ///< the root first
  std::vector<std::pair<nn::Module*, size_t>> owners;  ///< modules with parameters of their own, and their units
};

/// Each parameter goes to the unit of its module; one that modules of several units share goes to the root. Errors: a
/// parameter of another dtype or device than the first, not f32 or f64; a lower precision for f64; no parameters.
UnitLayout lay_out_units(nn::Module& model, const WrapPolicy& policy, const MixedPrecision& precision);

/// A module's own buffers, without its children's.
std::vector<NamedTensor> own_buffers(nn::Module& module);

}  // namespace weft::dist
