// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "dist/fsdp_options.h"

namespace weft::dist {

/// Which unit has which parameters, and in which buffers they travel.
struct UnitLayout {
  struct Buffer {
    bool low = false, trained = false;
    std::vector<NamedTensor> parameters;  ///< matrices first, then vectors: a rule by rank makes two ranges of them
    /// What tells the buffers of a unit apart in names: nothing for trained f32, ` (low, frozen)`.
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
/// parameter of another dtype or device than the first, not f32 or f64; a lower precision for f64; none at all.
UnitLayout lay_out_units(nn::Module& model, const WrapPolicy& policy, const MixedPrecision& precision);

/// The buffers of a module without its children's.
std::vector<NamedTensor> own_buffers(nn::Module& module);

}  // namespace weft::dist
