// SPDX-License-Identifier: Apache-2.0
#include "io/stored_dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and copied as they are");

constexpr std::array<StoredDType, 14> kStored{{{"F32", DType::f32, 4},
                                               {"F64", DType::f64, 8},
                                               {"BF16", DType::bf16, 2},
                                               {"F16", DType::f16, 2},
                                               {"I64", DType::i64, 8},
                                               {"I32", DType::i32, 4},
                                               {"U8", DType::u8, 1},
                                               {"BOOL", DType::boolean, 1},
                                               {"I8", DType::i32, 1},
                                               {"I16", DType::i32, 2},
                                               {"U16", DType::i32, 2},
                                               {"U32", DType::i64, 4},
                                               {"F8_E4M3", DType::f16, 1},
                                               {"F8_E5M2", DType::f16, 1}}};

/// 8-bit floats (Micikevicius et al. 2022, "FP8 formats for deep learning", table 1) as the bits of an f16.
uint16_t from_e5m2(uint8_t bits) { return static_cast<uint16_t>(bits << 8); }  // f16 cut to two bits of mantissa

/// Bias 7, no infinity, NaN only with all bits set. Its 15 exponents fit f16's 31, so all values but 0 become normal.
uint16_t from_e4m3(uint8_t bits) {
  const uint16_t sign = static_cast<uint16_t>((bits & 0x80) << 8);
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return sign | 0x7e00;
  if (exponent == 0 && mantissa == 0) return sign;
  if (exponent == 0) {  // subnormal: mantissa / 8 * 2^-6
    exponent = 1;
    while ((mantissa & 8) == 0) mantissa <<= 1, --exponent;
    mantissa &= 7;
  }
  return static_cast<uint16_t>(sign | (exponent - 7 + 15) << 10 | mantissa << 7);
}

/// Widens elements of From at the end of the memory to elements of To that fill it, front to back: writes never reach
/// unread elements, since sizeof(To) > sizeof(From).
template <class From, class To, class Convert>
void widen(char* memory, int64_t n, Convert&& convert) {
  const char* from = memory + static_cast<size_t>(n) * (sizeof(To) - sizeof(From));
  for (int64_t i = 0; i < n; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(From), sizeof value);
    const To wide = static_cast<To>(convert(value));  // NOLINT(bugprone-signed-char-misuse): an int8 is a number
    std::memcpy(memory + static_cast<size_t>(i) * sizeof(To), &wide, sizeof wide);
  }
}

void widen(const StoredDType& stored, char* memory, int64_t n) {
  const auto same = [](auto value) { return value; };
  if (stored.name == "I8") return widen<int8_t, int32_t>(memory, n, same);
  if (stored.name == "I16") return widen<int16_t, int32_t>(memory, n, same);
  if (stored.name == "U16") return widen<uint16_t, int32_t>(memory, n, same);
  if (stored.name == "U32") return widen<uint32_t, int64_t>(memory, n, same);
  if (stored.name == "F8_E4M3") return widen<uint8_t, uint16_t>(memory, n, from_e4m3);
  if (stored.name == "F8_E5M2") return widen<uint8_t, uint16_t>(memory, n, from_e5m2);
}

}  // namespace

const StoredDType* find_stored_dtype(std::string_view name) {
  const auto found = std::find_if(kStored.begin(), kStored.end(), [&](const auto& row) { return row.name == name; });
  return found == kStored.end() ? nullptr : &*found;
}

std::string_view stored_name(DType dtype) {
  return std::find_if(kStored.begin(), kStored.end(),
                      [&](const auto& row) { return row.dtype == dtype && !row.is_widened(); })
      ->name;
}

bool is_countable(const Shape& sizes) {
  uint64_t product = 1;
  for (const int64_t size : sizes)
    if (size != 0 &&
        (__builtin_mul_overflow(product, static_cast<uint64_t>(size), &product) || product >= uint64_t{1} << 60))
      return false;
  return true;
}

Tensor read_stored(const StoredDType& stored, const Shape& sizes, const std::function<void(void*, uint64_t)>& read,
                   const std::function<void(std::string_view)>& complain) {
  Tensor tensor = Tensor::empty(sizes, stored.dtype);
  const int64_t n = tensor.numel();
  if (n == 0) return tensor;
  auto* memory = static_cast<char*>(tensor.raw_data());
  const uint64_t in_file = static_cast<uint64_t>(n) * stored.bytes;
  read(memory + (tensor.nbytes() - in_file), in_file);
  if (stored.dtype == DType::boolean && std::any_of(memory, memory + n, [](char byte) { return (byte & ~1) != 0; }))
    complain("expected 0 or 1 for each BOOL, got another byte");
  widen(stored, memory, n);
  return tensor;
}

}  // namespace weft
