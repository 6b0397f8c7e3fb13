// SPDX-License-Identifier: Apache-2.0
#include "core/promotion.h"

namespace weft {
namespace {

/// Higher wins; bf16 and f16 are equal and meet in f32.
int rank_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 7;
    case DType::f32:
      return 6;
    case DType::bf16:
    case DType::f16:
      return 5;
    case DType::i64:
      return 4;
    case DType::i32:
      return 3;
    case DType::u8:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 0;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  const int ranks[] = {rank_of(a), rank_of(b)};
  if (ranks[0] == ranks[1]) return DType::f32;
  return ranks[0] > ranks[1] ? a : b;
}

DType promote_with_number(DType dtype) { return is_floating(dtype) ? dtype : DType::f32; }

}  // namespace weft
