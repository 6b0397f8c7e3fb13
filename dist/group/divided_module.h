// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"

namespace weft::dist {

/// A module with own parameters that are parts of larger ones.
class DividedModule {
 public:
  virtual ~DividedModule() = default;
  /// The ranks that hold the parts, in the parts' order.
  virtual const ProcessGroup& holders() const = 0;
};

}  // namespace weft::dist
