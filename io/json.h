// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "kernels/error.h"

namespace weft {

/// The text with null for NaN, Infinity and -Infinity, which Python's json.dumps writes and JSON lacks.
std::string standard_json(std::string_view text);

/// How deep objects and lists nest in a JSON text, without building them.
int json_nesting(std::string_view text);

/// Errors: JSON that nests deeper than 64 levels. To copy or to print a million would overflow the stack. `what` begins
/// the text.
void check_nesting(std::string_view text, std::string_view what);

/// Checks a text for nlohmann::ordered_json, whose objects search their names linearly: none may have
/// more than 1000.
void check_ordered(std::string_view text, std::string_view what);

/// A whole number of nlohmann::json; its own get() converts a real one, which need not fit. Errors: another value, or
/// one that Int cannot hold; `what` begins the text.
template <class Int, class Json>
Int json_integer(const Json& value, std::string_view what) {
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<Int>(value.template get<uint64_t>())
                        : value.is_number_integer() && std::in_range<Int>(value.template get<int64_t>());
  WEFT_CHECK(fits, printable(what), ": expected a whole number, got ",
             value.is_number() ? value.dump() : value.type_name());
  return value.template get<Int>();
}

}  // namespace weft
