// SPDX-License-Identifier: Apache-2.0
#include "core/promotion.h"

#include <cmath>
#include <utility>

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

DType promote(DType dtype, Number number) {
  if (is_floating(dtype)) return dtype;
  return !number.is_whole() ? DType::f32 : dtype == DType::i32 ? DType::i32 : DType::i64;
}

void check_holds(const char* op, DType dtype, Number number) {
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(dtype, op, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const double value = number.value();
      const bool is_whole = number.is_whole() || (value >= -0x1p63 && value < 0x1p63 && value == std::floor(value));
      WEFT_CHECK(is_whole && std::in_range<T>(static_cast<int64_t>(number)), op, ": ", dtype, " does not hold ",
                 number);
    }
  });
}

}  // namespace weft
