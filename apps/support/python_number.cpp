// SPDX-License-Identifier: Apache-2.0
#include "apps/support/python_number.h"

#include <charconv>
#include <cmath>

namespace weft::support {

std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Python's float_repr_style: an exponent below -4 and from 16 on.
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char text[40];
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text, text + sizeof text, value, format).ptr;
  std::string number(text, end);
  if (plain && number.find('.') == std::string::npos) number += ".0";
  return number;
}

}  // namespace weft::support
