// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <ostream>
#include <type_traits>

namespace weft {

/// An integer type, or an enum that converts to an integer. bool and floating types are excluded: a conversion would
/// truncate.
template <class T>
concept WholeType = (std::integral<T> && !std::same_as<T, bool>) ||
                    (std::is_enum_v<T> && std::is_convertible_v<T, int64_t>);

/// An integer argument (a dimension, a count). bool and floating numbers do not compile, unlike with int64_t: `sort(x,
/// true)`, `softmax(x, 0.5)`.
class Integer {
 public:
  template <WholeType T>
  constexpr Integer(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  constexpr operator int64_t() const { return value_; }                // NOLINT(google-explicit-constructor)

 private:
  int64_t value_;
};

/// A numeric argument of an op, integer or floating as written by the caller: integers stay exact beyond 2^53.
class Number {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Number(T value) : value_(static_cast<double>(value)) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_integral_v<T>) {
      whole_ = static_cast<int64_t>(value);
      is_whole_ = (whole_ < 0) == (value < T(0));  // a uint64_t of 2^63 and more is a floating number
    }
  }
  constexpr Number(Integer value) : Number(static_cast<int64_t>(value)) {}  // NOLINT(google-explicit-constructor)

  constexpr bool is_whole() const { return is_whole_; }
  /// Whole numbers that a double does not hold are rounded.
  constexpr double value() const { return value_; }
  /// As C++ converts the number that was written.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit constexpr operator T() const { return is_whole_ ? static_cast<T>(whole_) : static_cast<T>(value_); }
  constexpr Number operator-() const {
    return is_whole_ ? Number(static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(whole_))) : Number(-value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Number number) {
    return number.is_whole_ ? out << number.whole_ : out << number.value_;
  }

 private:
  double value_;
  int64_t whole_ = 0;
  bool is_whole_ = false;
};

}  // namespace weft
