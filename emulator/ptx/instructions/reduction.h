// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "emulator/machine/tensor_box.h"
#include "emulator/ptx/matrix/matrix_numbers.h"

// The reductions that asynchronous copies make in memory, element by element. Each element is updated atomically: other
// OS threads run other clusters.

namespace emulator::ptx {

enum class Reduction : uint8_t { none, add, min, max, inc, dec, bit_and, bit_or, bit_xor };

inline Reduction reduction_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (uint8_t k = 1; k < std::size(kNames); ++k)
    if (kNames[k] == name) return static_cast<Reduction>(k);
  return Reduction::none;
}

/// The reductions that PTX allows for a type (PTX ISA 9.0, "cp.reduce.async.bulk").
inline bool can_reduce(TensorType type, Reduction op) {
  const bool small = type == TensorType::u8 || type == TensorType::u16;
  if (op == Reduction::none || small) return false;
  if (op == Reduction::add) return true;
  if (op == Reduction::min || op == Reduction::max)
    return !is_float(type) || type == TensorType::f16 || type == TensorType::bf16;
  if (op == Reduction::inc || op == Reduction::dec) return type == TensorType::u32;
  return !is_float(type);
}

namespace detail {

template <class T>
T reduce_value(T x, T y, Reduction op) {
  switch (op) {
    case Reduction::add:
      return x + y;
    case Reduction::min:
      if constexpr (std::is_floating_point_v<T>) return std::fmin(x, y);
      return y < x ? y : x;
    case Reduction::max:
      if constexpr (std::is_floating_point_v<T>) return std::fmax(x, y);
      return x < y ? y : x;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) switch (op) {
      case Reduction::inc:
        return x >= y ? T{0} : x + 1;
      case Reduction::dec:
        return x == 0 || x > y ? y : x - 1;
      case Reduction::bit_and:
        return x & y;
      case Reduction::bit_or:
        return x | y;
      case Reduction::bit_xor:
        return x ^ y;
      default:
        break;
    }
  return x;
}

template <class Word, class Combine>
void update(char* memory, const char* with, Combine&& combine) {
  Word* const place = reinterpret_cast<Word*>(memory);
  Word y;
  std::memcpy(&y, with, sizeof(y));
  Word old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, combine(old, y), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

template <class T, class Word>
void update_as(char* memory, const char* with, Reduction op) {
  update<Word>(memory, with, [op](Word x, Word y) {
    return std::bit_cast<Word>(reduce_value(std::bit_cast<T>(x), std::bit_cast<T>(y), op));
  });
}

template <class Half>
void update_half(char* memory, const char* with, Reduction op) {
  update<uint16_t>(memory, with, [op](uint16_t x, uint16_t y) {
    return Half::bits(reduce_value(Half::number(x), Half::number(y), op));
  });
}

}  // namespace detail

/// One element; memory is aligned to it.
inline void reduce_element(char* memory, const char* with, TensorType type, Reduction op) {
  switch (type) {
    case TensorType::u32:
      return detail::update_as<uint32_t, uint32_t>(memory, with, op);
    case TensorType::s32:
      // Sums wrap.
      return op == Reduction::add ? detail::update_as<uint32_t, uint32_t>(memory, with, op)
                                  : detail::update_as<int32_t, uint32_t>(memory, with, op);
    case TensorType::u64:
      return detail::update_as<uint64_t, uint64_t>(memory, with, op);
    case TensorType::s64:
      return op == Reduction::add ? detail::update_as<uint64_t, uint64_t>(memory, with, op)
                                  : detail::update_as<int64_t, uint64_t>(memory, with, op);
    case TensorType::f16:
      return detail::update_half<matrix::F16>(memory, with, op);
    case TensorType::bf16:
      return detail::update_half<matrix::Bf16>(memory, with, op);
    case TensorType::f32:
    case TensorType::f32_ftz:
    case TensorType::tf32:
    case TensorType::tf32_ftz:
      return detail::update_as<float, uint32_t>(memory, with, op);
    case TensorType::f64:
      return detail::update_as<double, uint64_t>(memory, with, op);
    case TensorType::u8:
    case TensorType::u16:
      return;  // can_reduce() says no
  }
}

}  // namespace emulator::ptx
