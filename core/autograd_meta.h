// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/autograd.h"

namespace weft {

/// What `impl` carries for autograd, made now if it has nothing yet.
inline AutogradMeta& meta_of(TensorImpl* impl) {
  if (!impl->autograd) impl->autograd = std::make_unique<AutogradMeta>();
  return *impl->autograd;
}

}  // namespace weft
