// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/dtype.h"

namespace weft::kernels {

/// Maps an element's bits to an unsigned key with the same order: so one integer comparison serves all dtypes of a
/// size, and NaN needs no special case.
struct SortOrder {
  uint64_t infinity = 0;  ///< the bits of floating infinity (larger bits are NaN); 0 for integers
  bool is_signed = false;
  bool descending = false;

  SortOrder(DType dtype, bool from_the_largest) : descending(from_the_largest) {
    switch (dtype) {
      case DType::f32:
        infinity = 0x7f800000u;
        break;
      case DType::f64:
        infinity = 0x7ff0000000000000u;
        break;
      case DType::bf16:
        infinity = 0x7f80u;
        break;
      case DType::f16:
        infinity = 0x7c00u;
        break;
      case DType::i64:
      case DType::i32:
        is_signed = true;
        break;
      case DType::u8:
      case DType::boolean:
        break;
    }
  }

  template <class Bits>
  WEFT_HD Bits key(Bits bits) const {
    const Bits sign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1)), all = static_cast<Bits>(~Bits(0));
    if (is_signed) bits = static_cast<Bits>(bits ^ sign);
    if (infinity != 0) {
      // Magnitudes grow with their bits: negative numbers are turned round and put below the others.
      const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
      if (magnitude > static_cast<Bits>(infinity))
        bits = all;
      else if ((bits & sign) != 0 && magnitude != 0)
        bits = static_cast<Bits>(~bits);
      else
        bits = static_cast<Bits>(magnitude | sign);
    }
    return descending ? static_cast<Bits>(~bits) : bits;
  }
};

}  // namespace weft::kernels
