// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/simt.h"

namespace weft::tests {

/// How many kernels the emulated GPU (simt) has run for `body`, which must wait for them.
template <class Body>
int64_t launches_of(Body&& body) {
  const auto count = [] {
    const emulator::source::Usage usage = emulator::source::usage();
    return usage.fixed_launches + usage.random_launches;
  };
  const int64_t before = count();
  body();
  return count() - before;
}

}  // namespace weft::tests
