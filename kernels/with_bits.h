// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/dtype.h"

namespace weft::kernels {

/// Calls `body` with the unsigned integer of the dtype's size as its template argument, for what moves elements and does not
/// compute with them.
template <class Body>
void with_bits(DType dtype, Body&& body) {
  switch (size_of(dtype)) {
    case 1:
      return body.template operator()<uint8_t>();
    case 2:
      return body.template operator()<uint16_t>();
    case 4:
      return body.template operator()<uint32_t>();
    default:
      return body.template operator()<uint64_t>();
  }
}

}  // namespace weft::kernels
