// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

/// Copies the values of from's parameters, buffers and counters, their devices and dtypes, what is frozen, and which
/// modules train. Hooks and gradients stay where they are. Errors: other names or sizes; then nothing is changed.
void copy_state(Module& from, Module& to);

/// A copy of a model. `make` builds a model of the same structure, whose first weights are not drawn:
///   const auto teacher = nn::copy_of(*student, [] { return nn::resnet18({.classes = 10}); });
template <class Make>
auto copy_of(Module& from, const Make& make) {
  const SkipInit skip;
  auto copy = make();
  WEFT_CHECK(copy, "copy_of: expected `make` to build a ", from.kind(), ", got null");
  copy_state(from, *copy);
  return copy;
}

}  // namespace weft::nn
