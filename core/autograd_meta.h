// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/autograd.h"

namespace weft {

/// The state for autograd of `impl`, made now if there is none.
inline AutogradMeta& meta_of(TensorImpl* impl) {
  if (!impl->autograd) impl->autograd = std::make_unique<AutogradMeta>();
  return *impl->autograd;
}

}  // namespace weft
