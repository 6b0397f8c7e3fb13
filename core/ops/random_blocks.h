// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/random.h"
#include "kernels/random.h"

namespace weft {

/// Takes as many Philox blocks from the device's generator as `n` elements of `dtype` use (kernels/random.h).
inline kernels::RandomArguments draw(Device device, int64_t n, DType dtype) {
  const uint64_t per_block = dtype == DType::f64 ? 2 : 4;
  return {generator(device).take((static_cast<uint64_t>(n) + per_block - 1) / per_block)};
}

}  // namespace weft
